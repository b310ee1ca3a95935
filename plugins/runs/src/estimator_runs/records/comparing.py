"""The comparison of runs: the differences, the best one, and whether the difference is more than chance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_runs.records.reading import OF_RECORDS, RunRecord

_RESAMPLES = 10_000


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Two configurations over their common seeds.

    Args:
        seeds: the seeds of the pairs.
        difference: the mean of second minus first.
        low: the lower end of its 95% interval by the paired bootstrap.
        high: the upper end.
    """

    seeds: tuple[int, ...]
    difference: float
    low: float
    high: float


def differences(runs: Sequence[RunRecord]) -> dict[str, list[Any]]:
    """Returns the settings in which runs differ: for each key one value per run; None if a run does not have it.

    The values of a configuration file are known for runs of `estimator run`. For the trials of a sweep, only the values
    that the sweep has chosen are known. A run whose values are not known counts as not different.
    """
    settings = [run.settings for run in runs]
    found: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for one in settings for key in one):
        of_record = key.partition(".")[0] in OF_RECORDS
        known = [one for run, one in zip(runs, settings, strict=True) if of_record or key in one or run.tells_all]
        if len({_text(one.get(key)) for one in known}) > 1:
            found[key] = [one.get(key) for one in settings]
    return found


def by_configuration(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Returns groups of runs that differ only in the seed. The key names the settings that distinguish the groups."""
    varying = {key: column_text(values) for key, values in differences(runs).items()}
    groups: dict[str, list[RunRecord]] = {}
    for place, run in enumerate(runs):
        name = ", ".join(f"{key.partition('.')[2]}={texts[place]}" for key, texts in varying.items())
        groups.setdefault(name or "all", []).append(run)
    return groups


def paired_bootstrap(first: Mapping[int, float], second: Mapping[int, float]) -> Paired | None:
    """Compares the difference of two configurations with the effect of the seed.

    Args:
        first: a metric by seed.
        second: the same metric of the other configuration.

    Returns:
        The mean difference over the seeds of both, with an interval; None below two seeds. The same values have
        the same interval.

    Example:
        >>> found = paired_bootstrap({1: 0.5, 2: 0.6, 3: 0.7}, {1: 0.6, 2: 0.7, 3: 0.8})
        >>> round(found.low, 6), round(found.high, 6)
        (0.1, 0.1)
    """
    seeds = sorted(set(first) & set(second))
    if len(seeds) < 2:
        return None
    pairs = np.array([second[seed] - first[seed] for seed in seeds])
    drawn = np.random.default_rng(0).integers(len(pairs), size=(_RESAMPLES, len(pairs)))
    low, high = np.percentile(pairs[drawn].mean(axis=1), [2.5, 97.5])
    return Paired(seeds=tuple(seeds), difference=float(pairs.mean()), low=float(low), high=float(high))


def of_seeds(runs: Sequence[RunRecord], metric: str, mode: str) -> dict[int, float]:
    """Returns the best value of each run that has a seed and the metric, by seed."""
    found = {run.seed: run.best(metric, mode) for run in runs}
    return {seed: value for seed, value in found.items() if seed is not None and value is not None}


@dataclass(frozen=True, kw_only=True)
class Against:
    """A configuration in comparison with the best one.

    Args:
        settings: the settings that distinguish the configuration.
        best: the settings that distinguish the best one.
        found: their difference over the common seeds.
    """

    settings: str
    best: str
    found: Paired


def against_best(runs: Sequence[RunRecord], metric: str, mode: str) -> list[Against]:
    """Returns each configuration with the best one, the second best first. It needs at least two common seeds."""
    values = {name: of_seeds(group, metric, mode) for name, group in by_configuration(runs).items()}
    told = {name: of for name, of in values.items() if of}
    ranked = sorted(told, key=lambda name: rank(sum(told[name].values()) / len(told[name]), mode))
    pairs = [(name, paired_bootstrap(told[ranked[0]], told[name])) for name in ranked[1:]]
    return [Against(settings=name, best=ranked[0], found=found) for name, found in pairs if found is not None]


def rank(value: float | None, mode: str) -> float:
    """Returns the sort key of runs: the best comes first, and runs without a value come last.

    Example:
        >>> sorted([0.5, None, 0.9], key=lambda value: rank(value, "max"))
        [0.9, 0.5, None]
    """
    if value is None:
        return float("inf")
    return value if mode == "min" else -value


def column_text(values: Sequence[Any]) -> list[str]:
    """Returns the texts of the values of one setting. Numbers have five digits, if different values stay different.

    Example:
        >>> column_text([0.0031622776601683794, 0.1, "adam"]), column_text([0.1234567, 0.1234568])
        (['0.0031623', '0.1', 'adam'], ['0.1234567', '0.1234568'])
    """
    texts = [str(value) for value in values]
    short = [f"{value:.5g}" if isinstance(value, float) else text for value, text in zip(values, texts, strict=True)]
    return short if len(set(short)) == len(set(texts)) else texts


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
