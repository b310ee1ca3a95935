"""The files that derive from a journal: event files without the bytes that do not count, and the results of
evaluations.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from estimator_core._files import draft_of
from estimator_core._journal.entries import Entry, Evaluated, Segment
from estimator_core._journal.lineage import Lineage
from estimator_core._journal.reading import IDENTITY, refresh
from estimator_core._storage.local import LocalStorage
from estimator_core._summaries import read_eval_records, try_lock

METRICS_FILE = "metrics.jsonl"
#: Directories of a model_dir that contain no event files of a run.
_NOT_OURS = ("checkpoints", "export", "journal", "snapshots")
_EVENT_FILE = re.compile(r"events\.out\.tfevents\.\d{10}\.e(\d{6})")
_log = logging.getLogger("estimator_core")


def event_files(root: Path) -> Iterator[tuple[str, int]]:
    """Yields the event files that the runs of a model_dir wrote, each with the epoch in its name.

    A directory below with its own journal is another model_dir, and its files belong to that.
    """
    for directory, names, files in os.walk(root):
        if "journal" in names and IDENTITY in files and Path(directory) != root:
            names.clear()
            continue
        names[:] = sorted(name for name in names if not (Path(directory) == root and name in _NOT_OURS))
        inside = os.path.join(directory, "")  # joined once, because a directory may have thousands of files
        for name in sorted(files):
            if (match := _EVENT_FILE.fullmatch(name)) and int(match[1]):  # 0: evaluations without a training run
                yield inside + name, int(match[1])


def sync_event_files(root: Path, entries: Iterable[Entry]) -> None:
    """Flushes the bytes of event files that a record will count.

    This happens before the record, in the thread that writes it.

    Args:
        root: the model_dir.
        entries: the entries of the record.
    """
    for entry in entries:
        if isinstance(entry, Segment):
            with contextlib.suppress(FileNotFoundError), open(root / entry.directory / entry.name, "r+b") as file:
                os.fsync(file.fileno())


def begin_sync(root: Path, entries: Iterable[Entry]) -> Callable[[], None]:
    """Starts the same flush in a thread. Returns a function that waits for it and raises its error."""
    thread = ThreadPoolExecutor(1)
    done = thread.submit(sync_event_files, root, entries)
    thread.shutdown(wait=False)
    return done.result


def trim_event_files(root: Path, lineage: Lineage, *, before: int, ended: bool) -> None:
    """Removes the bytes of event files that the journal does not count, so that readers see each point once.

    A file is cut by replacing it with a copy of its beginning, so later writes of a frozen process have no effect. A
    file that a running evaluation writes is not changed.

    Args:
        root: the model_dir.
        lineage: the current sum of the journal. It is updated.
        before: the epoch of this run. Only files of earlier epochs change.
        ended: whether the previous run has ended regularly. If not, it may only be frozen, with bytes in its memory, so
            each of its files is replaced by a copy, whatever its length.
    """
    inside = {name: os.path.join(root, name, "") for name in {directory for directory, _ in lineage.marks}}
    counted = {inside[directory] + name: told[-1].size for (directory, name), told in lineage.marks.items()}
    sizes: dict[str, int] = {}
    for path, epoch in event_files(root):  # each file is examined once, because every call leaves one
        sizes[path] = _size_of(path)
        if epoch >= before - 1 or sizes[path] > counted.get(path, 0):
            _trim(root, lineage, Path(path), epoch, before=before, ended=ended)
            sizes[path] = _size_of(path)
    for path, size in counted.items():
        found = sizes[path] if path in sizes else _size_of(path)
        if found < size:
            _log.error("%s has %d bytes, but the journal counts %d: some points are lost.", path, found, size)


def trim_leftovers(root: Path, lineage: Lineage) -> None:
    """Removes the remains of killed evaluations in event files after the end of the run, because no run takes an epoch
    then.

    Args:
        root: the model_dir.
        lineage: the current sum of the journal. It is updated. If the run has not ended, nothing happens.
    """
    if lineage.ended is None:
        return
    before = lineage.epoch + 1
    for folder in (name for name in os.listdir(root) if re.match(r"eval(_|$)", name)):
        inside = os.path.join(root, folder, "")
        for name in os.listdir(inside) if os.path.isdir(inside) else ():
            told = lineage.marks.get((folder, name))
            if told and _size_of(inside + name) <= told[-1].size:
                continue  # the case of almost all files
            if match := _EVENT_FILE.fullmatch(name):
                _trim(root, lineage, Path(inside + name), int(match[1]), before=before, ended=True, sure=True)


def is_written(path: Path) -> bool:
    """Returns whether a running evaluation writes an event file. Its bytes are not recorded yet."""
    with _unwritten(path) as free:
        return free is False


def _trim(
    root: Path, lineage: Lineage, path: Path, epoch: int, *, before: int, ended: bool, sure: bool = False
) -> None:
    """Cuts one file, unless an evaluation writes it. With `sure`, only if its lock shows that the writer has ended."""
    frozen = epoch == before - 1 and not ended
    with contextlib.suppress(FileNotFoundError):
        if epoch >= before or not (frozen or path.stat().st_size > _counted(root, lineage, path)):
            return
        with _unwritten(path) as free:
            if free is False or (sure and free is None):
                return
            refresh(LocalStorage(root), lineage)  # its writer may have recorded it before it released the lock
            size = _counted(root, lineage, path)
            if not size:
                path.unlink()
            elif frozen or path.stat().st_size > size:
                _cut(path, size)


@contextlib.contextmanager
def _unwritten(path: Path) -> Generator[bool | None]:
    """Yields whether no evaluation writes an event file, and prevents one from starting.

    Yields None if locks are not supported.
    """
    with contextlib.ExitStack() as opened:
        try:
            free = try_lock(opened.enter_context(open(path, "r+b")))
        except OSError:
            free = None
        yield free


def _size_of(path: str) -> int:
    """Returns the number of bytes of a file; 0 if it does not exist."""
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _counted(root: Path, lineage: Lineage, path: Path) -> int:
    """Returns the number of bytes of an event file that count."""
    folder = path.parent.relative_to(root).as_posix()
    told = lineage.marks.get(("" if folder == "." else folder, path.name))
    return told[-1].size if told else 0


def results_line(root: Path, result: Evaluated) -> str:
    """Returns the line of `metrics.jsonl` for an evaluation."""
    where = json.dumps(os.path.join(root, result.checkpoint) if result.checkpoint else None)
    between = ', "between_checkpoints": true' if result.between else ""
    told = f'"global_step": {result.step}, "metrics": {result.metrics_text}, "checkpoint_path": {where}'
    return f'{{{told}, "wall_time": {json.dumps(result.time)}{between}}}\n'


def results_dir(root: Path, name: str) -> Path:
    """Returns the directory of an evaluation's results."""
    return root / (f"eval_{name}" if name else "eval")


def results_file(root: Path, lineage: Lineage, name: str) -> str:
    """Returns the complete text of `metrics.jsonl` for an evaluation."""
    of_name = [result for (one, _), result in lineage.evaluations.items() if one == name]
    return "".join(results_line(root, result) for result in sorted(of_name, key=lambda result: result.step))


def names_of_evaluations(root: Path, lineage: Lineage) -> list[str]:
    """Returns the names of the recorded evaluations, and of those that have left results."""
    found = (path.parent.name for path in root.glob(f"eval*/{METRICS_FILE}"))
    left = {"" if name == "eval" else name.removeprefix("eval_") for name in found if re.match(r"eval(_|$)", name)}
    return sorted(left | {name for name, _ in lineage.evaluations})


def write_results_files(root: Path, lineage: Lineage) -> None:
    """Rewrites each `metrics.jsonl` that differs from the journal."""
    for path, text in differing_results(root, lineage):
        if not text:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(text)


def differing_results(root: Path, lineage: Lineage) -> Iterator[tuple[Path, str]]:
    """Yields each `metrics.jsonl` that differs from the journal, with its correct text."""
    for name in names_of_evaluations(root, lineage):
        path, text = results_dir(root, name) / METRICS_FILE, results_file(root, lineage, name)
        if not _same_results(path, text):
            yield path, text


def _same_results(path: Path, text: str) -> bool:
    """Returns whether a file has the same results.

    The last line of a step counts. The order does not matter, nor does the place of the model_dir when the lines were
    written.
    """
    if not text and not path.exists():
        return True
    try:
        found = path.read_text()
        if sorted(found.splitlines()) == sorted(text.splitlines()):
            return True  # almost always the case, and nothing is parsed
        return _by_step(found) == _by_step(text)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _by_step(text: str) -> dict[int, str]:
    records = [json.loads(line) for line in text.splitlines()]
    return {
        record["global_step"]: json.dumps(
            {**record, "checkpoint_path": os.path.basename(record.get("checkpoint_path") or "")}
        )
        for record in records
    }


def results_in(root: str | os.PathLike[str]) -> Iterator[Evaluated]:
    """Yields the evaluations in the files of a model_dir, whatever process wrote them."""
    root = Path(root)
    for name in names_of_evaluations(root, Lineage()):
        for step, record in read_eval_records(results_dir(root, name)).items():
            where = record.get("checkpoint_path") or ""
            with contextlib.suppress(ValueError):
                where = Path(where).relative_to(root).as_posix() if where else ""
            yield Evaluated(
                name=name,
                step=step,
                metrics=record["metrics"],
                checkpoint=where,
                between=bool(record.get("between_checkpoints")),
                time=float(record.get("wall_time") or 0.0),
            )


def imported(root: Path) -> Iterable[Evaluated | Segment]:
    """Yields the evaluations and event files of a model_dir that a release without a journal wrote."""
    yield from results_in(root)
    for directory in (root, *sorted(path for path in root.glob("eval*") if path.is_dir())):
        for path in sorted(directory.glob("events.out.tfevents.*")):
            # The marks at the beginning of later files hide the points of later steps.
            where = "" if directory == root else directory.name
            yield Segment(directory=where, name=path.name, size=path.stat().st_size, step=0)


def _cut(path: Path, size: int) -> None:
    with draft_of(path) as draft:
        shutil.copyfile(path, draft)
        os.truncate(draft, size)
