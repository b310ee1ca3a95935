"""The choice of the fastest way to make the steps, by measurement."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from estimator_runs.population.program import SEVERAL, STEPS, TOGETHER, Row, Way

_log = logging.getLogger("estimator_core")
_REPEATS, _STEPS = 3, 2 * STEPS
#: The seconds from which a step is slow. Its dispatch costs little in comparison, and a signal would wait for several
#: steps.
_SLOW_SECONDS = 2e-3


def fastest(ways: Mapping[str, Way], states: Sequence[Any], row: Row) -> str:
    """Returns the name of the fastest way, tried on copies of the states.

    Several steps are made in one dispatch only if that computes the same bits, because a run may be interrupted between
    any two of them.

    Args:
        ways: the ways by name.
        states: the states of the runs, on the host.
        row: a batch for each run.
    """
    seconds, after = dict[str, float](), dict[str, Any]()
    for name, way in ways.items():
        if way.several is not None and seconds[TOGETHER] > _SLOW_SECONDS:
            continue
        after[name], seconds[name] = _tried(way, states, row)
        if name == SEVERAL and not _same_bits(after[TOGETHER], after[SEVERAL]):
            del seconds[name]
    best = min(seconds, key=lambda name: seconds[name])
    figures = ", ".join(f"{name} {value * 1e6:.0f}" for name, value in seconds.items())
    _log.info("%d runs are trained %s: microseconds for one step of all: %s.", len(states), best, figures)
    return best


def _tried(way: Way, states: Sequence[Any], row: Row) -> tuple[Any, float]:
    """Returns the states after some steps, and the seconds of a step of all runs.

    The seconds are the best of several measurements without compilation.
    """
    carried, _ = jax.block_until_ready(_stepped(way, way.enter(states), row))
    first = jax.device_get(carried)
    found: list[float] = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        carried, _ = jax.block_until_ready(_stepped(way, carried, row))
        found.append((time.perf_counter() - began) / _STEPS)
    return first, min(found)


def _stepped(way: Way, carried: Any, row: Row) -> tuple[Any, Any]:
    values = None
    for _ in range(_STEPS if way.several is None else _STEPS // STEPS):
        carried, values = way.step(carried, row) if way.several is None else way.several(carried, [row] * STEPS)
    return carried, values


def _same_bits(one: Any, other: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(mine.tobytes() == its.tobytes() for mine, its in pairs)
