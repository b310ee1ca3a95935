"""The records of starts in a model_dir: one file for each different record, and one line for each start."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of

_FOLDER, _STARTS = "capsules", "starts.jsonl"


@dataclass(frozen=True, kw_only=True)
class Start:
    """A start of a run.

    Args:
        epoch: the epoch of the run in the journal.
        step: the step from which it continued.
        capsule: the record of the start.
    """

    epoch: int
    step: int
    capsule: Mapping[str, Any]


def keep(model_dir: Path, capsule: Mapping[str, Any], *, epoch: int, step: int) -> Path:
    """Writes the record of a start. If an earlier start has the same record, only a line is added."""
    folder = model_dir / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(capsule, indent=1, sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = folder / f"{name}.json"
    if not path.exists():
        with draft_of(path) as draft:
            draft.write_text(text + "\n")
    starts = folder / _STARTS
    # The line feed ends a line that a kill has torn. Otherwise this line would be lost, too.
    torn = starts.is_file() and starts.read_bytes()[-1:] not in (b"", b"\n")
    with starts.open("a") as file:
        file.write("\n" if torn else "")
        file.write(json.dumps({"epoch": epoch, "step": step, "capsule": name}) + "\n")
    return path


def read_starts(model_dir: Path) -> Sequence[Start]:
    """Returns the starts of a run in their order.

    Raises:
        ArgumentError: the directory holds no records, or one cannot be read.
    """
    with _named(model_dir):
        return [
            Start(epoch=line["epoch"], step=line["step"], capsule=_capsule(model_dir, line))
            for line in _lines(model_dir)
        ]


def newest_capsule(model_dir: Path) -> Mapping[str, Any]:
    """Returns the record of the newest start of a run.

    Raises:
        ArgumentError: the directory holds no records, or the newest one cannot be read.
    """
    with _named(model_dir):
        return _capsule(model_dir, _lines(model_dir)[-1])


@contextlib.contextmanager
def _named(model_dir: Path) -> Generator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        trial = (
            " This is a trial: `estimator sweep FILE --trial NUMBER` writes its file, and the run of this file has one."
        )
        raise ArgumentError(
            f"{model_dir} has no record from which it could be run again: {_FOLDER}/{_STARTS}: {why}. Runs of "
            "`estimator run` have one if estimator-runs is "
            f"installed.{trial if (model_dir / '../../sweep.json').exists() else ''}"
        ) from error


def _capsule(model_dir: Path, line: Mapping[str, Any]) -> Mapping[str, Any]:
    return json.loads((model_dir / _FOLDER / f"{line['capsule']}.json").read_text())


def _lines(model_dir: Path) -> list[Any]:
    found = list(_whole((model_dir / _FOLDER / _STARTS).read_bytes()))
    if not found:
        raise ValueError("it has no complete line")
    return found


def _whole(text: bytes) -> Iterator[Any]:
    """Yields the lines that a kill has not torn."""
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)
