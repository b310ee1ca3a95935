"""Which way of making the steps is the faster one here, by measurement."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from estimator_runs.population.program import Row, Way

_log = logging.getLogger("estimator_core")
_REPEATS, _STEPS = 3, 10


def fastest(ways: Mapping[str, Way], states: Sequence[Any], row: Row) -> str:
    """The name of the fastest way, tried on copies of the states.

    Args:
        ways: by name.
        states: of the runs, on the host.
        row: a batch for each run.
    """
    seconds = {name: _seconds(way, states, row) for name, way in ways.items()}
    best = min(seconds, key=lambda name: seconds[name])
    figures = ", ".join(f"{name} {value * 1e6:.0f}" for name, value in seconds.items())
    _log.info("%d runs are trained %s: microseconds for a step of all: %s.", len(states), best, figures)
    return best


def _seconds(way: Way, states: Sequence[Any], row: Row) -> float:
    """Seconds of a step of all runs, the best of several measurements; what compiles is not counted."""
    carried, values = way.step(way.enter(states), row)
    jax.block_until_ready(values)
    found: list[float] = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        for _ in range(_STEPS):
            carried, values = way.step(carried, row)
        jax.block_until_ready(values)
        found.append((time.perf_counter() - began) / _STEPS)
    return min(found)
