"""Alternating rounds of two or more ways to do the same work: median paired ratios with bootstrap intervals."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One contestant against the reference.

    Attributes:
        ratio: median over the rounds of (rate of the contestant / rate of the reference in the same round).
        low, high: 95% bootstrap interval of that median.
    """

    name: str
    reference: str
    ratio: float
    low: float
    high: float
    median_seconds: float
    reference_seconds: float
    rounds: int


def compare(
    contestants: Mapping[str, Callable[[], None]],
    *,
    reference: str,
    rounds: int = 15,
    warm_up: int = 1,
    pairs: Sequence[tuple[str, str]] = (),
) -> list[Comparison]:
    """Runs every contestant once a round, in random order, and compares the times round by round.

    Args:
        contestants: what to run.
        reference: the contestant that all others are compared with.
        rounds: rounds that count.
        warm_up: rounds before them.
        pairs: further `(contestant, reference)` to compare.
    """
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    order = np.random.default_rng(0)
    for index in range(warm_up + rounds):
        for name in order.permutation(names):  # nobody always comes after the same one
            began = time.perf_counter()
            contestants[name]()
            if index >= warm_up:
                seconds[name].append(time.perf_counter() - began)
    asked = [(name, reference) for name in names if name != reference]
    return [compared(seconds, name, other) for name, other in [*asked, *pairs] if {name, other} <= set(names)]


def compared(seconds: Mapping[str, Sequence[float]], name: str, reference: str) -> Comparison:
    """One contestant's seconds against the reference's of the same rounds."""
    own, base = np.array(seconds[name]), np.array(seconds[reference])
    low, high = bootstrap_interval(base / own)
    return Comparison(
        name=name,
        reference=reference,
        ratio=float(np.median(base / own)),
        low=low,
        high=high,
        median_seconds=float(np.median(own)),
        reference_seconds=float(np.median(base)),
        rounds=len(own),
    )


def bootstrap_interval(ratios: np.ndarray, draws: int = 10_000) -> tuple[float, float]:
    """The 95% interval of the median under resampling of the rounds."""
    generator = np.random.default_rng(0)
    medians = np.median(ratios[generator.integers(0, len(ratios), size=(draws, len(ratios)))], axis=1)
    return float(np.quantile(medians, 0.025)), float(np.quantile(medians, 0.975))


def report(title: str, results: list[Comparison], *, steps: int, output: Path | None = None) -> None:
    """Prints a table, and writes JSON beside it if asked."""
    print(
        f"\n{title} ({results[0].rounds} alternating rounds of {steps} steps; "
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()})"
    )
    print(f"{'contestant':<34} {'reference':<14} {'ratio':>7} {'95% interval':>16} {'us/step':>9} {'ref us/step':>12}")
    for item in results:
        print(
            f"{item.name:<34} {item.reference:<14} {item.ratio:7.3f}   [{item.low:.3f}, {item.high:.3f}] "
            f"{item.median_seconds / steps * 1e6:9.1f} {item.reference_seconds / steps * 1e6:12.1f}"
        )
    if output is not None:
        output.write_text(
            json.dumps({"title": title, "steps": steps, "results": [asdict(item) for item in results]}, indent=1) + "\n"
        )
