"""The runs in model_dirs: `run.json`, the evaluations, and tags."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of
from estimator_core.summaries import read_eval_metrics
from estimator_runs.records.config_settings import told_by_file
from estimator_runs.records.digest import Digest, digests
from estimator_runs.records.digest_cache import known_digests
from estimator_runs.records.finding import files_below

_RECORD, _TAGS, _RESULTS = "run.json", "tags.json", "metrics.jsonl"
#: The entries of a record that must be objects if they exist.
_TABLES = ("run_config", "ended")
#: The settings that run.json contains completely.
OF_RECORDS = ("hparams", "run_config")
#: Keys that identify a run and do not count as settings.
_OF_THE_RUN = ("run_config.model_dir", "run_config.tf_random_seed")


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The record of a run.

    Args:
        path: the model_dir.
        record: the content of `run.json`.
        evaluations: the metrics by name of the evaluation and step. "" is the evaluation without a name. Those of a
            directory are read at each access, and only their digests stay in memory.
        tags: the tags of `estimator runs tag`.
    """

    path: Path
    record: Mapping[str, Any]
    evaluations: Mapping[str, Mapping[int, Mapping[str, Any]]]
    tags: tuple[str, ...] = ()
    _digests: dict[str, dict[str, Digest]] = field(default_factory=dict[str, dict[str, Digest]], repr=False)
    _told: list[tuple[Mapping[str, Any], bool]] = field(
        default_factory=list[tuple[Mapping[str, Any], bool]], repr=False
    )

    @property
    def seed(self) -> int | None:
        """The seed that the user set; None: it was drawn."""
        return self.record.get("run_config", {}).get("tf_random_seed")

    @property
    def settings(self) -> dict[str, Any]:
        """Hyperparameters, fields of RunConfig and known values of a configuration file, by key.

        The seed and the model_dir are not included.
        """
        found: dict[str, Any] = dict(self._by_file[0])
        for table in OF_RECORDS:
            values = self.record.get(table)
            if isinstance(values, Mapping):
                found.update({f"{table}.{name}": value for name, value in values.items()})
        return {key: value for key, value in found.items() if key not in _OF_THE_RUN}

    @property
    def tells_all(self) -> bool:
        """Whether the record of a configuration file exists. Then it contains all settings of the run."""
        return self._by_file[1]

    @cached_property
    def _by_file(self) -> tuple[Mapping[str, Any], bool]:
        return told_by_file(self.path)

    def curve(self, metric: str, evaluation: str = "") -> dict[int, float]:
        """Returns a metric by step. Steps without it are left out."""
        results = self.evaluations.get(evaluation, {})
        return {
            step: float(found[metric]) for step, found in results.items() if isinstance(found.get(metric), int | float)
        }

    def digest(self, metric: str, evaluation: str = "") -> Digest | None:
        """Returns the extremes, the last value and some points of a metric, or None. Results are read once."""
        return self._all_digests(evaluation).get(metric)

    def metric_names(self, evaluation: str = "") -> frozenset[str]:
        """Returns the metrics of an evaluation that are numbers; empty: nothing was evaluated."""
        return frozenset(self._all_digests(evaluation))

    def _all_digests(self, evaluation: str) -> dict[str, Digest]:
        if evaluation not in self._digests:
            known = self.evaluations
            if isinstance(known, _Results):
                self._digests[evaluation] = known.digests(evaluation)
            else:
                self._digests[evaluation] = digests(known.get(evaluation, {}).items())
        return self._digests[evaluation]

    def best(self, metric: str, mode: str, evaluation: str = "") -> float | None:
        """Returns the best value of a metric; None: the run does not have it."""
        found = self.digest(metric, evaluation)
        return None if found is None else found.least if mode == "min" else found.most


class _Results(Mapping[str, Mapping[int, Mapping[str, Any]]]):
    """Results by name of the evaluation, read at each access."""

    def __init__(self, model_dir: Path) -> None:
        self._folders = {
            "" if folder.name == "eval" else folder.name.removeprefix("eval_"): folder
            for folder in sorted(model_dir.iterdir())
            if folder.name.startswith("eval") and _is_there(folder / _RESULTS)
        }

    def __getitem__(self, name: str) -> Mapping[int, Mapping[str, Any]]:
        return read_eval_metrics(self._folders[name])

    def digests(self, name: str) -> dict[str, Digest]:
        """Returns the digests of the results of an evaluation; empty if no evaluation has this name."""
        return known_digests(self._folders[name] / _RESULTS) if name in self._folders else {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


def read_runs(places: Iterable[Path]) -> list[RunRecord]:
    """Returns the runs in some directories, by path.

    Args:
        places: model_dirs, or directories that contain some.

    Raises:
        ArgumentError: a directory cannot be read or holds no run, or the record of a run cannot be read.
    """
    found, faults = _model_dirs(places)
    if faults:
        raise ArgumentError("\n".join(faults))
    return [read_run(path) for path in found]


def read_sound_runs(places: Iterable[Path]) -> tuple[list[RunRecord], list[str]]:
    """Returns the runs that can be read, with their results, and a line for each fault.

    Faults are runs and directories that cannot be read.

    Args:
        places: model_dirs, or directories that contain some.

    Raises:
        ArgumentError: a directory cannot be read or holds no run, or no run can be read.
    """
    runs: list[RunRecord] = []
    found, faults = _model_dirs(places)
    for path in found:
        try:
            run = read_run(path)
            run.metric_names()
        except ArgumentError as error:
            faults.append(str(error))
        except OSError as error:
            faults.append(f"{path}: {error.filename} cannot be read: {error.strerror}")
        else:
            runs.append(run)
    if not runs:
        raise ArgumentError("\n".join(faults))
    return runs, faults


def _model_dirs(places: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Returns the model_dirs, each once, and a line for each directory below that cannot be read."""
    found: dict[str, Path] = {}
    faults: dict[str, None] = {}
    for place in places:
        try:
            paths, told = ([place / _RECORD], []) if (place / _RECORD).is_file() else files_below(place, _RECORD)
        except OSError as error:  # it cannot be read
            raise ArgumentError(f"{place} cannot be read: {error.strerror}.") from error
        if not paths and not told:
            if not place.exists():
                raise ArgumentError(f"There is no directory {place}.")
            raise ArgumentError(f"{place} holds no run: there is no {_RECORD} in it or below it.")
        for path in paths:  # a run in several places has the path of the first
            found.setdefault(os.path.realpath(path.parent), path.parent)
        faults.update(dict.fromkeys(told))
    return list(found.values()), list(faults)


def _is_there(path: Path) -> bool:
    """Returns whether a file exists.

    Raises:
        OSError: its directory cannot be read.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def read_run(model_dir: Path) -> RunRecord:
    """Reads one run.

    Raises:
        ArgumentError: the directory holds no run, or its record, its tags or the directory of an evaluation cannot be
            read.
    """
    record: Any = _json(model_dir, _RECORD)
    if not isinstance(record, Mapping):
        raise ArgumentError(f"{model_dir} holds no run that can be read: {_RECORD}: the file holds no JSON object")
    wrong = [table for table in _TABLES if not isinstance(record.get(table, {}), Mapping)]
    if wrong:
        raise ArgumentError(f"{model_dir} holds no run that can be read: {_RECORD}: {wrong[0]} is not a JSON object")
    tags = _tags(model_dir)
    try:
        return RunRecord(path=model_dir, record=record, evaluations=_Results(model_dir), tags=tags)
    except OSError as error:
        raise ArgumentError(f"{model_dir}: {error.filename} cannot be read: {error.strerror}") from error


def tag_run(model_dir: Path, tags: Iterable[str], *, remove: bool = False) -> tuple[str, ...]:
    """Adds tags to a run, or removes them. Returns the resulting tags.

    Raises:
        ArgumentError: the directory holds no run or cannot be written, or a tag is empty, or has a comma, a line
            break or a control character in it.
    """
    read_run(model_dir)
    given = set(tags)
    for tag in sorted(given):
        if not any(map(str.isalnum, tag)) or "," in tag:
            raise ArgumentError(f"A tag needs a letter or a digit, and no comma, given: {tag!r}.")
        if not tag.isprintable() and not remove:
            raise ArgumentError(f"A tag is one line without tabs and control characters, given: {tag!r}.")
    kept = sorted(set(_tags(model_dir)) - given if remove else set(_tags(model_dir)) | given)
    try:
        with draft_of(model_dir / _TAGS) as draft:
            draft.write_text(json.dumps(kept) + "\n")
    except OSError as error:
        raise ArgumentError(f"{model_dir / _TAGS} cannot be written: {error.strerror}.") from error
    return tuple(kept)


def _tags(model_dir: Path) -> tuple[str, ...]:
    tags: Any = _json(model_dir, _TAGS) if (model_dir / _TAGS).is_file() else []
    if not isinstance(tags, list):
        raise ArgumentError(f"{model_dir} holds no run that can be read: {_TAGS}: the file holds no JSON list")
    return tuple(map(str, cast(list[Any], tags)))


def _json(model_dir: Path, name: str) -> Any:
    try:
        return json.loads((model_dir / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ArgumentError(f"{model_dir} holds no run that can be read: {name}: {why}") from error
