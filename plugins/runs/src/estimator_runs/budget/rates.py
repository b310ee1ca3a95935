"""The range test of Smith (2017): the learning rate grows from step to step, and the loss shows the useful range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_runs.budget.step import started
from estimator_runs.population.program import arrays, trace

_SMOOTH, _DIVERGED = 0.9, 4.0


@dataclass(frozen=True, kw_only=True)
class RateRange:
    """The result of a range test.

    Args:
        rates: the rate of each step.
        losses: the smoothed loss before each step.
        suggested: the rate at which the loss falls fastest; None: it does not fall.
        at_end: "lowest" or "highest" if the suggested rate is the first or the last one that can be suggested, so a
            better rate may be outside of the range. Otherwise "".
        diverged: the rate at which the loss reached four times its minimum, or was not finite; None: never.
    """

    rates: Sequence[float]
    losses: Sequence[float]
    suggested: float | None
    diverged: float | None
    at_end: str = ""


def rate_range(
    estimator: ec.Estimator,
    input_fn: Callable[..., Any],
    *,
    low: float = 1e-6,
    high: float = 1.0,
    steps: int = 100,
    name: str = "learning_rate",
    hooks: Sequence[Any] = (),
) -> RateRange:
    """Trains from the initial values with a rate that grows by the same factor at each step. The run is not kept.

    Args:
        estimator: an Estimator whose optimizer has the rate in its state, by `optax.inject_hyperparams`.
        input_fn: the training input.
        low: the first rate.
        high: the last rate.
        steps: the number of steps. It is smaller if the loss diverges or the input ends.
        name: the argument of the optimizer that is the rate.
        hooks: must be empty, because no hook is called.

    Raises:
        ArgumentError: the optimizer has no such rate in its state, a schedule sets it, or the numbers are not a range.
    """
    if not 0 < low < high or steps < 3:
        raise ArgumentError(f"A range test needs 0 < low < high and 3 steps, given: {low}, {high} and {steps}.")
    wanted = np.geomspace(low, high, steps)
    rates: list[float] = []
    losses: list[float] = []
    mean, diverged = 0.0, None
    with started(estimator, input_fn, hooks) as (member, standing):
        state, program = standing.state, None
        for rate in wanted:
            batch = standing.draw()
            if batch is None:
                break
            program = program or jax.jit(trace(member, batch).function)
            state, values = program(with_rate(state, name, rate), arrays(batch))
            _check_kept(state, name, rate)
            loss = float(values["loss"])
            mean = _SMOOTH * mean + (1 - _SMOOTH) * loss
            smooth = mean / (1 - _SMOOTH ** (len(losses) + 1))
            if not math.isfinite(loss) or (losses and smooth > min(losses) + (_DIVERGED - 1) * abs(min(losses))):
                diverged = float(rate)
                break
            rates.append(float(rate))
            losses.append(smooth)
    suggested = steepest(rates, losses)
    return RateRange(
        rates=rates, losses=losses, suggested=suggested, diverged=diverged, at_end=_at_end(rates, suggested, diverged)
    )


def with_rate(state: Any, name: str, rate: float) -> Any:
    """Returns a state whose optimizer has another rate.

    Raises:
        ArgumentError: the optimizer has no rate of this name.
    """
    found: list[str] = []

    def changed(path: Any, leaf: Any) -> Any:
        parts = [str(getattr(key, "name", getattr(key, "key", ""))) for key in path]
        if "hyperparams" not in parts[:-1]:
            return leaf
        found.append(parts[-1])
        return np.asarray(rate, leaf.dtype) if parts[-1] == name else leaf

    state = state._replace(opt_state=jax.tree_util.tree_map_with_path(changed, state.opt_state))
    if name not in found:
        raise ArgumentError(
            f"The optimizer has no {name!r} in its state. It has {sorted(set(found))}. Write "
            f"optax.inject_hyperparams(optax.adam)({name}=...)."
        )
    return state


def _check_kept(state: Any, name: str, rate: float) -> None:
    """Checks that the step used the rate, because a schedule replaces it.

    Raises:
        ArgumentError: the step used another rate.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(state.opt_state):
        parts = [str(getattr(key, "name", getattr(key, "key", ""))) for key in path]
        if "hyperparams" in parts[:-1] and parts[-1] == name and np.asarray(leaf) != np.asarray(rate, leaf.dtype):
            raise ArgumentError(
                f"A schedule of the optimizer sets {name!r}, so other rates have no effect. Write a number: "
                f"optax.inject_hyperparams(optax.adam)({name}=0.001)."
            )


def steepest(rates: Sequence[float], losses: Sequence[float]) -> float | None:
    """Returns the rate before the minimum at which the loss falls fastest per logarithm of the rate, or None.

    None means that the loss never falls.

    The first tenth is a warm-up: its averages include few batches, and vary with their data. For the same reason, the
    slope is measured from a tenth of the steps before the rate to a tenth after it.

    Example:
        >>> steepest([0.001, 0.01, 0.1, 1.0, 10.0], [1.0, 0.9, 0.5, 0.3, 2.0])
        0.1
    """
    first, width = _first(len(losses)), _width(len(losses))
    if len(losses) < 3:
        return None
    values, logs = np.asarray(losses), np.log(np.asarray(rates))
    end = max(first + 2, first - width + int(np.argmin(values[first - width :])) + 1)
    places = np.arange(first, min(end, len(losses)))
    after = np.minimum(places + width, len(losses) - 1)
    before = np.maximum(after - 2 * width, 0)
    slopes = (values[after] - values[before]) / (logs[after] - logs[before])
    place = int(np.argmin(slopes))
    return float(rates[places[place]]) if slopes[place] < 0 else None


def _width(count: int) -> int:
    """Returns a tenth of the steps: the warm-up, and half of the range over which a slope is measured."""
    return max(1, count // 10)


def _first(count: int) -> int:
    """Returns the index of the first rate that can be suggested."""
    return (count // 10) + _width(count)


def _at_end(rates: Sequence[float], suggested: float | None, diverged: float | None) -> str:
    """Returns the end of the range at which the suggested rate is. If the loss diverged, the range has no upper end."""
    if suggested is None:
        return ""
    if suggested <= rates[_first(len(rates))]:
        return "lowest"
    return "highest" if diverged is None and suggested >= rates[-1 - _width(len(rates))] else ""
