"""Runs the new program along the old one: every step begins with the weights that the old program had there.

In a free run, rounding grows even if the programs are equal, because Adam divides a gradient by its size. Here it
cannot grow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.hooks import Run, StepOutputs
from estimator_migration.checkpoints.slots import Slot, slot_of
from estimator_migration.proving.computed import Arrays, Computed, Evaluated
from estimator_migration.proving.optimizing import updates_of
from estimator_migration.proving.starting import StartFrom


@dataclass(kw_only=True)
class Led:
    """The quantities that the program computes in each step from the weights of the other side.

    Attributes:
        losses: the loss of each step.
        gradients: the gradients of each step.
        states: the variables that are not trained, after each step.
        updates: the trained variables after each step, if the optimizer of this program uses the gradients of the other
            side. Empty if the train_op is a function.
        end: the results with the last weights of the other side. None if the other side has recorded only the first
            step.
    """

    losses: list[float] = field(default_factory=list[float])
    gradients: list[Arrays] = field(default_factory=list[Arrays])
    states: list[Arrays] = field(default_factory=list[Arrays])
    updates: list[Arrays] = field(default_factory=list[Arrays])
    end: Evaluated | None = None


def led_along(
    estimator: ec.Estimator,
    input_fn: Callable[..., Any],
    there: Computed,
    names: Mapping[str, str],
    scratch: str | os.PathLike[str],
    evaluate: Callable[[ec.Estimator], Evaluated],
) -> Led:
    """Makes as many steps as the other side has recorded gradients for.

    Args:
        estimator: the estimator whose model_fn is differentiated. It is not trained.
        input_fn: the batches of the training.
        there: the other side.
        names: the names of variables that differ: the name there, by name here.
        scratch: a directory that may be deleted.
        evaluate: the function that evaluates and predicts.
    """
    model_fn, train_ops = estimator.model_fn, list[Any]()

    def probe(features: Any, labels: Any, mode: str, config: Any) -> ec.EstimatorSpec:
        spec = model_fn(features, labels, mode, config)
        if mode != ec.ModeKeys.TRAIN:
            return spec
        train_ops.append(spec.train_op)
        return replace(spec, train_op=_keeping_gradients(), training_hooks=(), training_chief_hooks=(), scaffold=None)

    seed = (estimator.config.tf_random_seed or 0) + 1  # another seed, so that random parts become visible
    config = estimator.config.replace(model_dir=str(Path(scratch)), tf_random_seed=seed)
    leading = _Leading(there, names, evaluate)
    ec.with_model_fn(estimator, probe, config).train(input_fn, hooks=[leading], steps=len(there.gradients))
    found = leading.led
    if leading.whole and config.accumulate_steps == 1:
        first = {name: leading.weights[name] for name in leading.trainable}
        found.updates = updates_of(train_ops[-1], first, there.gradients, names, leading.rows)
    return found


class _Leading(StartFrom):
    """Sets the weights of the other side at every step, and records the results."""

    def __init__(
        self, there: Computed, names: Mapping[str, str], evaluate: Callable[[ec.Estimator], Evaluated]
    ) -> None:
        super().__init__(there.weights[0], names)
        self.led = Led(losses=self.losses)
        self.trainable: tuple[str, ...] = ()
        self.whole = len(there.gradients) == len(there.losses) > 1
        self.rows: list[Arrays] = []
        self._recorded, self._evaluate = there, evaluate

    def after_create(self, run: Run) -> None:
        super().after_create(run)
        self.trainable = tuple(run.state.variables)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        super().after_step(run, step, out)
        leaves, _ = jax.tree_util.tree_flatten_with_path(run.state.opt_state)
        slots = {slot_of(_path(keys), self.trainable): np.array(value) for keys, value in leaves}
        last = {
            slot.variable: slots[Slot(word="last", variable=slot.variable)] == step for slot in slots if slot.variable
        }
        gradients = {slot.variable: value for slot, value in slots.items() if slot.word == "gradient"}
        self.led.gradients.append({name: np.where(last[name], value, 0) for name, value in gradients.items()})
        tables = [slot.variable for slot in slots if slot.word == "steps" and slot.variable]
        self.rows.append({name: np.flatnonzero(last[name].any(axis=1)) for name in tables})
        state = run.state.model_state
        self.led.states.append({name: np.array(state[name]) for name in self.weights if name in state})
        if self.whole:
            run.assign(self.placed(run, self._recorded.weights[step]))
            if step == len(self._recorded.gradients):
                self.led.end = self._evaluate(run.estimator)


def _path(keys: tuple[Any, ...]) -> str:
    """Returns the path of a leaf, as a checkpoint names it."""
    names = ("key", "idx", "name")
    return "/".join(str(next(getattr(key, name) for name in names if hasattr(key, name))) for key in keys)


def _keeping_gradients() -> optax.GradientTransformation:
    """Returns an optimizer whose state is the last gradients that it received.

    A row of a row-sparse table keeps its gradient until a batch touches it again, so the state also has the last step
    of each number.
    """

    def init(params: optax.Params) -> Any:
        steps = jax.tree.map(lambda value: jnp.zeros_like(value, dtype=jnp.int32), params)
        return {"gradient": jax.tree.map(jnp.zeros_like, params), "last": steps, "steps": jnp.zeros((), jnp.int32)}

    def update(updates: optax.Updates, state: Any, params: optax.Params | None = None) -> tuple[optax.Updates, Any]:
        steps = state["steps"] + 1
        last = jax.tree.map(lambda value: jnp.full_like(value, steps), state["last"])
        return jax.tree.map(jnp.zeros_like, updates), {"gradient": updates, "last": last, "steps": steps}

    return optax.GradientTransformation(init, update)
