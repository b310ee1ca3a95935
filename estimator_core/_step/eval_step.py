"""One evaluation step: merges the metrics of a batch into those of earlier batches, on the device."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jax_core

from estimator_core._backends import Placement
from estimator_core._metrics.base import Metric
from estimator_core._metrics.example_weights import applying_example_weights
from estimator_core._metrics.joint_totals import Together
from estimator_core._metrics.mean import mean
from estimator_core._metrics.merging import check_same_structure, split_host_metrics
from estimator_core._metrics.term_recording import noting
from estimator_core._model.initialize import step_key
from estimator_core._model.scope import applying
from estimator_core._model.shared_programs import SharedJit
from estimator_core._model.variables import VariableSpec
from estimator_core._step.discovery import reject_tracers_in_hooks, report_padded_loss
from estimator_core._step.model_fn import BoundModelFn
from estimator_core._step.state import SEED_LOW, STEP, TrainState
from estimator_core._types import Arrays, Mask, PyTree
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")


#: The arrays of the device metrics so far, including "loss", see `Together`. Building the metrics again for every batch
#: would cost the host more than a small batch costs the device.
Accumulated = tuple[jax.Array, ...]


#: The number of batches that did not fit the previous program, after which that program is no longer tried first.
_PATIENCE = 16


class Evaluated(NamedTuple):
    """A state to evaluate, and the part of it that the program uses."""

    state: TrainState
    leaves: tuple[jax.Array, ...]

    @classmethod
    def of(cls, state: TrainState) -> Evaluated:
        """Wraps a state. The program does not use the optimizer slots."""
        return cls(state, tuple(jax.tree_util.tree_leaves(state._replace(opt_state=()))))


class EvalOutputs(NamedTuple):
    """The results of one evaluation batch.

    All fields except `accumulated` are arrays of this batch only: metrics for the host, and `outputs` for hooks.
    """

    accumulated: Accumulated
    host_metrics: dict[str, PyTree]
    outputs: Arrays


class _Program(NamedTuple):
    run: Callable[..., EvalOutputs]
    several: Callable[..., Accumulated]
    empty: Accumulated
    has_effects: bool


class EvalStep:
    """The compiled evaluation step of one model, for all its batch shapes. model_fn is traced once per shape.

    Args:
        model_fn: the bound model_fn.
        specs: a function that returns the known variables.
        example_mean: whether "loss" weights batches by their examples.
        fetches: the names of the predictions and tensors that are returned for hooks.
        traces: the counter of the traces of model_fn.
        placement: the placement on the devices.
    """

    def __init__(
        self,
        model_fn: BoundModelFn,
        specs: Callable[[], Mapping[str, VariableSpec]],
        *,
        example_mean: bool,
        fetches: frozenset[str],
        traces: Counter[str],
        placement: Placement,
    ) -> None:
        self._model_fn = model_fn
        self._specs = specs
        self._example_mean = example_mean
        self.fetches = fetches
        self._traces = traces
        self._placement = None if placement.single else placement
        self._programs: dict[Any, _Program] = {}
        #: The program of the previous batch, which fits most batches.
        self._quick: Callable[..., EvalOutputs] | None = None
        self._others = 0
        self._started = jnp.bool_(True)  # on the device, because a number of the host is sent there at each call
        self._structure: dict[str, Any] | None = None
        self._together: Together | None = None  # the place of each metric in the accumulated arrays
        self.hooks: tuple[Hook, ...] = ()
        self.output_kinds: dict[str, str] = {}

    def prepare(self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> None:
        """Traces model_fn for the shapes of a batch, if that has not happened yet."""
        self._program(state, features, labels, weights)

    def __call__(
        self, accumulated: Accumulated | None, state: Evaluated, features: PyTree, labels: PyTree, weights: Mask
    ) -> EvalOutputs:
        """Adds one batch. `accumulated` is the result of the previous batch; None for the first."""
        if self._quick is not None and accumulated is not None:
            try:
                return self._quick(accumulated, self._started, state.leaves, features, labels, weights)
            except (TypeError, ValueError):  # other shapes, refused before the program runs
                self._others += 1
        program = self._program(state.state, features, labels, weights)
        before = program.empty if accumulated is None else accumulated
        outputs = program.run(before, accumulated is not None, state.leaves, features, labels, weights)
        self._quick = getattr(program.run, "compiled", None) if self._others < _PATIENCE else None
        return outputs

    def several(
        self, accumulated: Accumulated | None, state: Evaluated, features: PyTree, labels: PyTree, weights: Mask
    ) -> Accumulated:
        """Adds batches that are stacked along a leading axis, in order, without outputs of single batches.

        This is for models without host metrics. Returns the accumulated metrics.
        """
        program = self._program(state.state, features, labels, weights, leading=1)
        started = accumulated is not None
        return program.several(
            program.empty if accumulated is None else accumulated, started, state.leaves, (features, labels, weights)
        )

    def totals(self, accumulated: Accumulated | None) -> dict[str, Metric]:
        """Returns the accumulated metrics by name, from arrays on the device or the host."""
        return {} if accumulated is None or self._together is None else self._together.apart(accumulated)

    def metrics(self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> dict[str, Any]:
        """Returns the metrics of a batch without its loss, which is not a metric of examples.

        It is pure and may be traced.
        """
        on_device, on_host, _ = self._batch(state._replace(opt_state=()), features, labels, weights)
        return {name: metric for name, metric in {**on_device, **on_host}.items() if name != "loss"}

    def has_effects(self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> bool:
        """Returns whether evaluating a batch calls back to the host, as `jax.debug.print` does."""
        return self._program(state, features, labels, weights).has_effects

    def _program(
        self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask, *, leading: int = 0
    ) -> _Program:
        """Returns the program for batches like this one, or like those stacked along `leading` axes."""
        leaves, treedef = jax.tree_util.tree_flatten((features, labels, weights))
        signature = (treedef, tuple((leaf.shape[leading:], leaf.dtype) for leaf in leaves))
        if signature not in self._programs:
            one = [jax.ShapeDtypeStruct(leaf.shape[leading:], leaf.dtype) for leaf in leaves]
            batch = jax.tree_util.tree_unflatten(treedef, one)
            self._programs[signature] = self._trace(state._replace(opt_state=()), *batch)
        return self._programs[signature]

    def _trace(self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> _Program:
        # Traced once into a jaxpr. It shows the structure of the metrics before the accumulating program is compiled
        # from it.
        jaxpr, shapes = jax.make_jaxpr(self._joined, return_shape=True)(state, features, labels, weights)
        metrics: dict[str, Metric] = shapes[0]
        if self._structure is not None:
            check_same_structure(self._structure, metrics)
        self._structure = metrics
        evaluate, treedef = jax_core.jaxpr_as_fun(jaxpr), jax.tree_util.tree_structure(shapes)
        self._together = together = Together.of(metrics, apart=self._placement is not None)

        def run(accumulated: Accumulated, started: jax.Array, *batch: PyTree) -> EvalOutputs:
            flat = evaluate(*jax.tree_util.tree_leaves(batch))
            _, new, host_metrics, outputs = jax.tree_util.tree_unflatten(treedef, flat)
            merged = together.merged(accumulated, new)
            chosen = tuple(jnp.where(started, old, fresh) for old, fresh in zip(merged, new, strict=True))
            return EvalOutputs(chosen, host_metrics, outputs)

        def several(
            accumulated: Accumulated, started: jax.Array, state: tuple[jax.Array, ...], batches: PyTree
        ) -> Accumulated:
            def add(carry: tuple[Accumulated, jax.Array], batch: PyTree) -> tuple[tuple[Accumulated, jax.Array], None]:
                return (run(*carry, state, *batch).accumulated, jnp.bool_(True)), None

            return jax.lax.scan(add, (accumulated, jnp.bool_(started)), batches)[0][0]

        has_effects = bool(jaxpr.effects)
        if self._placement is None:
            empty = tuple(jnp.zeros(leaf.shape, leaf.dtype) for leaf in shapes[1])
            return _Program(SharedJit(run), SharedJit(several), empty, has_effects)
        empty = self._placement.replicate(tuple(np.zeros(leaf.shape, leaf.dtype) for leaf in shapes[1]))
        whole = self._placement.replicated
        return _Program(jax.jit(run, out_shardings=whole), jax.jit(several, out_shardings=whole), empty, has_effects)

    def _joined(
        self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask
    ) -> tuple[dict[str, Metric], Accumulated, dict[str, PyTree], Arrays]:
        """Returns the result of `_batch`, with the arrays to accumulate inserted after the metrics of the device."""
        with noting() as noted:
            on_device, on_host, outputs = self._batch(state, features, labels, weights)
        together = Together.of(on_device, apart=self._placement is not None)
        return on_device, together.joined(on_device, noted), on_host, outputs

    def _batch(
        self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask
    ) -> tuple[dict[str, Metric], dict[str, PyTree], Arrays]:
        self._traces[ModeKeys.EVAL] += 1
        with (
            applying_example_weights(weights) as ignores_padding,
            applying(
                state.variables,
                state.model_state,
                mode=ModeKeys.EVAL,
                key=lambda: step_key(state.clock[SEED_LOW:], state.clock[STEP]),
                specs=self._specs(),
            ) as scope,
        ):
            spec = self._model_fn.spec(features, labels, ModeKeys.EVAL)
            reject_tracers_in_hooks(spec)
            on_device, on_host = split_host_metrics(dict(spec.eval_metric_ops or {}))
        if ignores_padding() and not self._programs:
            report_padded_loss(features, ModeKeys.EVAL)
        size = _examples(features, labels, weights)
        loss = mean(spec.loss, weights=size) if self._example_mean else mean(spec.loss)
        if not self.hooks:
            self.hooks = tuple(spec.evaluation_hooks)
        named = {name: one for name, one in {**scope.tensors, **scope.summaries}.items() if one.kind != "text"}
        predictions = spec.predictions if isinstance(spec.predictions, Mapping) else {"predictions": spec.predictions}
        available = {name: value for name, value in predictions.items() if value is not None}
        available |= {name: one.value for name, one in named.items()}
        # The point of a metric is its value over all batches, not the summary of one batch.
        kinds = {name: one.kind for name, one in named.items() if name not in on_device and name not in on_host}
        self.output_kinds = {"loss": "scalar", **dict.fromkeys(available, "tensor"), **kinds}
        outputs = {"loss": spec.loss, **{name: value for name, value in available.items() if name in self.fetches}}
        return {"loss": loss, **on_device}, on_host, outputs


def _examples(features: PyTree, labels: PyTree, weights: Mask) -> PyTree:
    """Returns the number of real examples in a batch, as a float32 scalar."""
    if weights is not None:
        return jnp.sum(weights)
    leaves = [leaf for leaf in jax.tree_util.tree_leaves((features, labels)) if leaf.ndim]
    return jnp.float32(leaves[0].shape[0] if leaves else 1)
