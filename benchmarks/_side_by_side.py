"""Alternating rounds of two or more ways to do the same work: median paired ratios with bootstrap intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of one contestant with the reference.

    Attributes:
        ratio: the median over the rounds of (rate of the contestant / rate of the reference in the same round). If
            smaller is better, the median of (amount of the contestant / amount of the reference).
        low, high: the 95% bootstrap interval of that median.
        median, reference_median: the medians of the measured quantity, in seconds or bytes.
    """

    name: str
    reference: str
    ratio: float
    low: float
    high: float
    median: float
    reference_median: float
    rounds: int
    smaller_is_better: bool = False


def compare(
    contestants: Mapping[str, Callable[[], None]],
    *,
    reference: str | None = None,
    rounds: int = 15,
    warm_up: int = 1,
    pairs: Sequence[tuple[str, str]] = (),
) -> list[Comparison]:
    """Runs every contestant once per round, in random order, and compares the times round by round.

    Args:
        contestants: the functions to run, by name.
        reference: the contestant that all others are compared with. None compares only `pairs`.
        rounds: the number of rounds that count.
        warm_up: the number of rounds before them.
        pairs: the further pairs `(contestant, reference)` to compare. Pairs with an absent contestant are skipped.
    """
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    order = np.random.default_rng(0)
    for index in range(warm_up + rounds):
        for name in order.permutation(names):  # no contestant always follows the same one
            began = time.perf_counter()
            contestants[name]()
            if index >= warm_up:
                seconds[name].append(time.perf_counter() - began)
    asked = [] if reference is None else [(name, reference) for name in names if name != reference]
    return [compared(seconds, name, other) for name, other in [*asked, *pairs] if {name, other} <= set(names)]


def compared(
    measured: Mapping[str, Sequence[float]], name: str, reference: str, *, smaller_is_better: bool = False
) -> Comparison:
    """Returns the comparison of the seconds or bytes of one contestant and the reference in the same rounds."""
    own, base = np.array(measured[name]), np.array(measured[reference])
    ratios = own / base if smaller_is_better else base / own
    low, high = bootstrap_interval(ratios)
    return Comparison(
        name=name,
        reference=reference,
        ratio=float(np.median(ratios)),
        low=low,
        high=high,
        median=float(np.median(own)),
        reference_median=float(np.median(base)),
        rounds=len(own),
        smaller_is_better=smaller_is_better,
    )


def bootstrap_interval(ratios: np.ndarray, draws: int = 10_000) -> tuple[float, float]:
    """Returns the 95% interval of the median under resampling of the rounds."""
    generator = np.random.default_rng(0)
    medians = np.median(ratios[generator.integers(0, len(ratios), size=(draws, len(ratios)))], axis=1)
    return float(np.quantile(medians, 0.025)), float(np.quantile(medians, 0.975))
