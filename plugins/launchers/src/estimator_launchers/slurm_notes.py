"""Reports the notes that the batch script of a job and its processes write to the folder of the job, in lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from estimator_launchers.outcome import RESUMABLE, in_words

#: The statuses of processes that end because of others. They are reported only if no process ended badly before.
_FOLLOWS = (0, RESUMABLE, 134)


@dataclass(frozen=True, kw_only=True)
class _End:
    """How and when a process ended, in seconds."""

    when: float
    place: int
    status: int


def told(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the known events of a job, each line after a key that does not change.

    Args:
        folder: the folder of the job. `began/A` has the start of attempt A and the number of its processes.
            `placed/A.P` has the node of process P. `ended/A.P` has the time and the status of its end.

    Example:
        >>> list(told(Path("/no/such/folder")))
        []
    """
    attempts = sorted(int(path.name) for path in (folder / "began").glob("[0-9]*"))
    for attempt in attempts:
        began = _words(folder / "began" / str(attempt))
        if not began:  # the note is incomplete
            return
        count, before = int(began[1]), attempt - 1
        if before in attempts:
            yield from _losses(folder, before, count)
            first = min((end.when for end in _ends(folder, before) if end.status and end.place < count), default=None)
            passed = "" if first is None else f", {int(began[0]) / 1e9 - first:.1f} s after the loss"
            yield f"again {attempt}", f"starting again, {count} together (attempt {attempt + 1}){passed}"
        yield from _failures(folder, attempt, count)


def _failures(folder: Path, attempt: int, count: int) -> Iterator[tuple[str, str]]:
    """Yields the processes that ended badly: the first one, and all that did not end because of others."""
    bad = [end for end in sorted(_ends(folder, attempt), key=lambda end: end.when) if end.status]
    for end in bad:
        if end is bad[0] or end.status not in _FOLLOWS:
            named = _named(folder, attempt, end.place, count)
            yield f"ended {attempt} {end.place}", f"{named} has ended: {in_words(end.status)}"


def _losses(folder: Path, attempt: int, count: int) -> Iterator[tuple[str, str]]:
    """Yields the processes of an earlier attempt without a note of their end. Their node is lost."""
    ended = {end.place for end in _ends(folder, attempt)}
    for path in sorted((folder / "placed").glob(f"{attempt}.*")):
        place = int(path.name.partition(".")[2])
        if place not in ended:
            named = _named(folder, attempt, place, count)
            yield f"lost {attempt} {place}", f"{named} is lost: it has left no record of its end"


def _ends(folder: Path, attempt: int) -> list[_End]:
    found = [(path, _words(path)) for path in (folder / "ended").glob(f"{attempt}.*")]
    return [_End(when=int(words[0]) / 1e9, place=int(words[1]), status=int(words[2])) for _, words in found if words]


def _named(folder: Path, attempt: int, place: int, count: int) -> str:
    host = _words(folder / "placed" / f"{attempt}.{place}")
    who = f"process {place}" if place < count else "the evaluator"
    return f"{who} on {host[0]}" if host else who


def _words(path: Path) -> list[str]:
    """Returns the words of a note, or none while it is incomplete."""
    text = path.read_text() if path.is_file() else ""
    return text.split() if text.endswith("\n") else []
