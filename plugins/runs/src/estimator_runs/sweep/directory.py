"""The directory of a sweep: plans, owners and outcomes of trials, and the storage of Optuna for finished trials.

One file plans a trial and another one ends it, each written atomically. The process that works on a trial holds a lock
on it, which the operating system releases when the process dies in any way. Finished trials are added to the storage in
the order of their numbers, so the storage does not depend on which process was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.schema import Sweep
from estimator_runs.configuration.show import masked
from estimator_runs.directories import check_owner
from estimator_runs.json_file import write_json
from estimator_runs.sweep.engine import Plan, directions, engine, running
from estimator_runs.workers import opened_lock, owned

_CONFIGURATION, _DIGEST = "configuration", "configuration_digest"
_JOURNAL = "study.journal"
_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a trial.

    Args:
        state: the state in the words of Optuna.
        values: the values of the objectives; empty if the trial failed.
        steps: the first objective at each evaluation.
        reason: the reason of a failure.
        attributes: the state that sampler and pruner keep with the trial.
    """

    state: Literal["COMPLETE", "PRUNED", "FAIL"]
    values: Sequence[float] = ()
    steps: Mapping[int, float] = field(default_factory=dict[int, float])
    reason: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Shelf:
    """The directory of a sweep.

    Args:
        folder: the path of the directory, which need not exist yet.
        sweep: the search.
        space: the distributions by name.
    """

    def __init__(self, folder: Path, sweep: Sweep, space: Mapping[str, Any]) -> None:
        self.folder, self._sweep, self._space = folder, sweep, space

    def trial_dir(self, number: int) -> Path:
        """Returns the model_dir of a trial."""
        return self.folder / "trials" / f"{number:05d}"

    def open(self, configuration: Mapping[str, Any], *, look: bool = False) -> None:
        """Creates the directory, or refuses one of another search.

        Args:
            configuration: the common configuration of the trials. An earlier version did not record it.
            look: whether the sweep is only read.

        Raises:
            ArgumentError: a search with another space, seed, objective, sampler, number of workers or configuration
                began here, or a population. Also if `look` is set and no search began here.
        """
        said = json.loads(self._sweep.model_dump_json(exclude={"trials", "storage"}))
        told = json.dumps(configuration, sort_keys=True, default=str)
        said[_CONFIGURATION] = json.loads(json.dumps(masked(configuration), default=str))
        said[_DIGEST] = hashlib.sha256(told.encode()).hexdigest()
        path = self.folder / "sweep.json"
        check_owner(self.folder, path.name)
        if look and not path.exists():
            raise ArgumentError(f"{self.folder} holds no sweep that has begun. Give its directory (--dir).")
        if not look:
            with self.locked():
                if not path.exists():
                    write_json(path, said)
                    return
        self._check_same(said, json.loads(path.read_text()))

    def _check_same(self, said: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        of_before, of_now = _flat(before.get(_CONFIGURATION, {})), _flat(said[_CONFIGURATION])
        changed = [key for key in said if key not in (_CONFIGURATION, _DIGEST) and said[key] != before.get(key)]
        was = dict(before)
        if _DIGEST in before and before[_DIGEST] != said[_DIGEST]:
            keys = dict.fromkeys([*of_now, *of_before])
            changed += [key for key in keys if of_now.get(key) != of_before.get(key)] or [_CONFIGURATION]
            was |= {_CONFIGURATION: "with another secret", **of_before}
        if changed:
            raise ArgumentError(
                f"{self.folder} holds a sweep with another {', '.join(changed)}: {changed[0]} was "
                f"{was.get(changed[0])!r}. Give another directory (--dir), or the previous values."
            )

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Makes a block that one process enters at a time.

        Raises:
            ArgumentError: the directory cannot be written.
        """
        with opened_lock(self.folder / "sweep.lock") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def owned(self, number: int) -> Generator[bool]:
        """Yields whether this process may work on a trial. No other process may do so within the block."""
        with owned(self.trial_dir(number)) as mine:
            yield mine

    def plan(self, number: int) -> Plan | None:
        """Returns the plan of a trial; None: it is not planned. An earlier version recorded only the values."""
        path = self.trial_dir(number) / "trial.json"
        if not path.exists():
            return None
        said = json.loads(path.read_text())
        return Plan(params=said["params"], attributes=said.get("attributes", {}), study=said.get("study", {}))

    def note(self, number: int, plan: Plan) -> None:
        """Records the plan of a trial."""
        write_json(self.trial_dir(number) / "trial.json", {"number": number, **asdict(plan)})

    def outcome(self, number: int) -> Outcome | None:
        """Returns the end of a trial; None: it has not ended."""
        path = self.trial_dir(number) / "outcome.json"
        if not path.exists():
            return None
        said = json.loads(path.read_text())
        said["steps"] = {int(step): value for step, value in said["steps"].items()}
        return Outcome(**said)

    def end(self, number: int, outcome: Outcome) -> None:
        """Records the end of a trial."""
        write_json(self.trial_dir(number) / "outcome.json", {**asdict(outcome), "steps": dict(outcome.steps)})

    def ended(self) -> int:
        """Returns the number of trials from the first one that have ended without a gap."""
        number = 0
        while (self.trial_dir(number) / "outcome.json").exists():
            number += 1
        return number

    def known(self, number: int) -> list[Any]:
        """Returns the trials that one trial knows: those `workers` or more places before it, and the later plans."""
        first = self.first_open(number)
        planned = [self.plan(one) for one in range(first, number)]
        ended = [self.frozen(one) for one in range(first)]
        return ended + [running(self._space, one) for one in planned if one is not None]

    def first_open(self, number: int) -> int:
        """Returns the first trial whose outcome one trial does not know. With one worker, this is the trial itself."""
        return max(0, number - self._sweep.workers + 1)

    def frozen(self, number: int) -> Any:
        """Returns a trial that has ended, as an object of Optuna."""
        optuna = engine()
        outcome, plan = self.outcome(number), self.plan(number)
        assert outcome is not None
        assert plan is not None
        state = optuna.trial.TrialState[outcome.state]
        return optuna.trial.create_trial(
            state=state,
            values=list(outcome.values) or None,
            params=dict(plan.params),
            distributions=dict(self._space),
            intermediate_values=dict(outcome.steps),
            system_attrs={**plan.attributes, **outcome.attributes},
            user_attrs={"model_dir": f"trials/{number:05d}", **({"reason": outcome.reason} if outcome.reason else {})},
        )

    def study(self) -> Any:
        """Returns the study of Optuna in its storage, with every trial that has ended, for other tools of Optuna.

        If the directory cannot be written, the study is in memory.
        """
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self.locked())
            except ArgumentError:  # the directory of another user: its storage does not change
                return self._filled(engine().storages.InMemoryStorage())
            self._set_aside_if_torn()
            return self._filled(self._storage())

    def _filled(self, storage: Any) -> Any:
        """Returns a study in a storage with every trial that has ended."""
        optuna = engine()
        try:
            study = optuna.load_study(study_name="sweep", storage=storage)
        except KeyError:  # otherwise a journal would record every attempt to create it
            study = optuna.create_study(study_name="sweep", storage=storage, directions=directions(self._sweep))
        for number in range(len(study.get_trials(deepcopy=False)), self.ended()):
            study.add_trial(self.frozen(number))
        return study

    def _set_aside_if_torn(self) -> None:
        """Moves a journal away that ends within a line, as after a full disk: Optuna can neither read nor extend it."""
        path = self.folder / _JOURNAL
        if self._sweep.storage != "journal" or not path.exists():
            return
        lines = path.read_bytes().splitlines(keepends=True)
        if all(line.endswith(b"\n") and _is_json(line) for line in lines):
            return
        aside = path.with_name(f"{_JOURNAL}.torn")
        path.replace(aside)
        _log.warning("%s is damaged. It was renamed to %s and is rebuilt from the trials.", path, aside.name)

    def _storage(self) -> Any:
        if self._sweep.storage == "sqlite":
            return f"sqlite:///{self.folder / 'study.db'}"
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        # Optuna's lock is a link to this path. If it led nowhere, the lock of a killed process would never expire.
        path = (self.folder / _JOURNAL).absolute()
        lock = path.with_name(f"{_JOURNAL}.lock")
        if lock.is_symlink() and not lock.exists():  # of a process of an earlier version
            lock.unlink()
        return JournalStorage(JournalFileBackend(str(path)))


def _is_json(line: bytes) -> bool:
    """Returns whether a line is JSON."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of nested tables by full key."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner: Any = _flat(value) if isinstance(value, Mapping) else {}
        found |= {f"{key}.{name}": each for name, each in inner.items()} or {key: value}
    return found
