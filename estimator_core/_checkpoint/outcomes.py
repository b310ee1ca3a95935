"""The outcomes of the parts of a save: if a process fails, all processes learn of it and raise the same error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from estimator_core._checkpoint.failures import brief, explained, may_pass
from estimator_core._cluster.processes import chief_says, gather
from estimator_core._storage.contract import StorageGoneError
from estimator_core.coordinator import Coordinator
from estimator_core.errors import CheckpointError, NanLossDuringTrainingError, SupersededError

_Outcome = dict[str, Any]
_Written = TypeVar("_Written")
#: The errors that keep their type in all processes. Any other is a CheckpointError in the others.
_KINDS = (NanLossDuringTrainingError, SupersededError, StorageGoneError)


class PassingError(Exception):
    """A failure after which a second attempt may succeed. It is raised in all processes, and never to the user.

    Args:
        error: the error to raise after the last attempt.
        reason: the failure in one line.
    """

    def __init__(self, error: Exception, reason: str) -> None:
        super().__init__(reason)
        self.error, self.reason = error, reason


@dataclass(frozen=True, kw_only=True)
class Together:
    """The processes that save one checkpoint.

    Each part of a save has two functions. The first works on files: its errors are explained, and may pass. The second
    receives the result of the first. Its errors are raised as they are, and end the save.

    Args:
        processes: the processes. A single one passes all values on as they are. Those of several are JSON.
        root: the checkpoints directory of this process.
        need: the number of bytes that this process writes.
    """

    processes: Coordinator
    root: Path
    need: int

    def in_each(
        self, topic: str, write: Callable[[], _Written], then: Callable[[_Written], object], failed: str = ""
    ) -> list[Any]:
        """Calls the functions in every process. Returns the results of the second, in order of the processes.

        Args:
            topic: see `Coordinator.agree`.
            write: the first function of this process.
            then: the second one.
            failed: the beginning of the message if this part fails.

        Raises:
            PassingError: the first function failed in a process, and a second attempt may succeed.
            NanLossDuringTrainingError, SupersededError, StorageGoneError: the run must not continue.
            CheckpointError: a process failed. The message names it, if there are several.
            ProcessLostError: a process is lost.
        """
        own, error = self._tried(write, then, failed)
        return self._values(gather(self.processes, topic, own), error)

    def in_chief(self, topic: str, write: Callable[[], _Written], then: Callable[[_Written], object]) -> Any:
        """Calls the functions in process 0. Returns the result of the second in all. See `in_each`."""
        own, error = self._tried(write, then) if self.processes.index == 0 else (None, None)
        return self._values([chief_says(self.processes, topic, own)], error)[0]

    def _tried(
        self, write: Callable[[], _Written], then: Callable[[_Written], object], failed: str = ""
    ) -> tuple[_Outcome, Exception | None]:
        passing = ""
        try:
            with explained(self.root, self.need):
                try:
                    written = write()
                except Exception as error:
                    passing = brief(error) if may_pass(error) else ""
                    raise
            return {"value": then(written)}, None
        except Exception as error:
            kind = next((index for index, kind in enumerate(_KINDS) if isinstance(error, kind)), None)
            step = error.step if isinstance(error, NanLossDuringTrainingError) else None
            return {"error": f"{failed}{error}", "kind": kind, "step": step, "passing": passing}, error

    def _values(self, told: Sequence[_Outcome], own: Exception | None) -> list[Any]:
        failures = [(process, one) for process, one in enumerate(told) if "error" in one]
        if not failures:
            return [one["value"] for one in told]
        process, first = min(failures, key=lambda failure: bool(failure[1]["passing"]))  # one that stays is raised
        error, who = own, ""
        if error is None or self.processes.count > 1:
            who = f"Process {process}: "
            error = _of_all(first, who)
            error.__cause__ = own if process == self.processes.index else None
        raise PassingError(error, f"{who}{first['passing']}") if first["passing"] else error


def _of_all(failure: _Outcome, who: str) -> Exception:
    """Returns the error of one process, to be raised in all."""
    kind, text = failure["kind"], failure["error"]
    if kind is None:
        return CheckpointError(f"{who}{text}")
    return NanLossDuringTrainingError(text, failure["step"]) if kind == 0 else _KINDS[kind](text)
