"""One training step: forward, gradients, optimizer, new state, named outputs. Also k steps in one dispatch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._backends import Placement
from estimator_core._metrics.example_weights import applying_example_weights
from estimator_core._model.initialize import step_key
from estimator_core._model.scope import Scope, applying
from estimator_core._model.shared_programs import SharedJit
from estimator_core._step import sparse
from estimator_core._step.discovery import Discovery, check_decisions, decisions_of, discover, form_of, train_metrics
from estimator_core._step.joined_features import apart, gathering
from estimator_core._step.model_fn import BoundModelFn
from estimator_core._step.optimizer import apply_member
from estimator_core._step.precision import (
    LOSS_SCALE,
    BatchData,
    Gradients,
    LossScale,
    all_finite,
    next_loss_scale,
    over_micro_batches,
    rematerialised,
    scales_loss,
    unscaled,
    where_finite,
)
from estimator_core._step.state import FIRST_BAD_STEP, SEED_LOW, STEP, Packed, Packing, TrainState
from estimator_core._step.train_op import CustomTrainOp, Group, TrainOp, assign_paths, hyperparameters, normalize
from estimator_core._types import Arrays, Mask, PyTree
from estimator_core.errors import ModelFnError
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec

GRADIENT_NORM = "gradient_norm"


class TrainStep:
    """The compiled training step of one model, for all its batch shapes.

    Args:
        model_fn: the bound model_fn.
        discovery: the discovery of the TRAIN mode.
        fetches: names of outputs that are computed but not returned by default: predictions, tensors, "gradient_norm".
        accumulate_steps: micro-batches each batch is split into.
        traces: counts the traces of model_fn.
        remat: the values that the backward pass recomputes. See `rematerialised`.
        placement: the placement on the devices.
        state_shardings: the shardings of the new state. None with one device.
        packing: how programs accept and return the state. None: the state itself.

    `step(state, features, labels, weights)` returns `(state, outputs)` and donates `state`. `scan(k)` returns the same
    function for k stacked batches, whose outputs have a leading axis of steps.
    """

    def __init__(
        self,
        model_fn: BoundModelFn,
        discovery: Discovery,
        *,
        fetches: frozenset[str],
        accumulate_steps: int,
        traces: Counter[str],
        remat: str,
        placement: Placement,
        state_shardings: TrainState | None,
        packing: Packing | None,
    ) -> None:
        assert discovery.train_op is not None
        self._model_fn = model_fn
        self._discovery = discovery
        self._train_op: TrainOp = discovery.train_op
        self._fetches = fetches
        self._accumulate_steps = accumulate_steps
        self._traces = traces
        self.texts: dict[str, str] = {}
        self._lookup_shapes: dict[object, Mapping[str, Any]] = {discovery.decisions.batch: discovery.lookups}
        self._scaled = scales_loss(model_fn.precision)
        self._remat = remat
        self._placement = None if placement.single else placement
        self._shardings = state_shardings
        self._jit: dict[str, Any] = {"donate_argnums": 0}
        if state_shardings is not None:
            # Outputs for hooks must be whole in every process. Otherwise all processes would have to read them
            # together.
            whole = self._placement.replicated if self._placement and self._placement.spans_processes else None
            self._jit["out_shardings"] = (state_shardings, whole)
        self.packing = packing
        self._made: Callable[..., Any] = SharedJit if self._placement is None else jax.jit
        self.step: Callable[..., Any] = self._made(self._packed(self._step), **self._jit)
        self._scans: dict[int, Callable[..., Any]] = {}

    def direct(self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> Callable[..., Any]:
        """Returns `step`, or a faster function, for batches like this one and others."""
        step = self.step
        given = self.gathered(features)
        step = step.direct(state, given, labels, weights) if isinstance(step, SharedJit) else step
        return self._gathering(step, features)

    def single(self, features: PyTree) -> Callable[..., Any]:
        """Returns `step`, for batches like this one and others."""
        return self._gathering(self.step, features)

    def gathered(self, features: PyTree) -> PyTree:
        """Returns these features in the form in which `single` passes them to `step`."""
        gather = self._gather(features)
        return features if gather is None else gather(features)

    def _gather(self, features: PyTree) -> Callable[[PyTree], PyTree] | None:
        return None if self.packing is None else gathering(features)

    def _gathering(self, step: Callable[..., Any], features: PyTree) -> Callable[..., Any]:
        gather = self._gather(features)
        return step if gather is None else lambda state, features, *rest: step(state, gather(features), *rest)

    def scan(self, k: int) -> Callable[..., Any]:
        """Returns the step over k stacked batches."""
        if k not in self._scans:

            def steps(state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> tuple[TrainState, Arrays]:
                return jax.lax.scan(
                    lambda state, batch: self._step(state, *batch), state, (features, labels, weights), length=k
                )

            self._scans[k] = self._made(self._packed(steps), **self._jit)
        return self._scans[k]

    def _packed(self, steps: Callable[..., tuple[TrainState, Arrays]]) -> Callable[..., tuple[PyTree, Arrays]]:
        """Returns the same program for the carried form of the state."""
        packing = self.packing
        if packing is None:
            return steps

        @wraps(steps)  # profiles and compile caches name a program by its function
        def packed(carried: PyTree, features: PyTree, labels: PyTree, weights: Mask) -> tuple[PyTree, dict[str, Any]]:
            state = packing.unpack(carried) if isinstance(carried, Packed) else carried
            state, outputs = steps(state, apart(features), labels, weights)
            return packing.pack(state) if packing.fits(state) else state, outputs

        return packed

    def eager(self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> tuple[TrainState, Arrays]:
        """Returns the step without compilation, for debugging. Its results are placed like those of the program."""
        with jax.disable_jit():
            made = self._step(state, features, labels, weights)
        spans = self._placement is not None and self._placement.spans_processes
        return jax.device_put(made, self._jit["out_shardings"]) if spans else made

    def _step(self, state: TrainState, features: PyTree, labels: PyTree, weights: Mask) -> tuple[TrainState, Arrays]:
        batch = features, labels, weights
        slots, scale = (state.opt_state[:-1], state.opt_state[-1]) if self._scaled else (state.opt_state, None)
        if isinstance(self._train_op, CustomTrainOp):
            slots = slots[0] if self._scaled else slots
            own = state._replace(opt_state=slots)
            variables, opt_state, aux, gradients = self._custom(self._train_op, own, scale, batch)
            norms = {}
        else:
            gradients, sparse_gradients, losses, aux = self._gradients(self._train_op, state, scale, batch)
            variables, opt_state, tables = dict(state.variables), [], self._discovery.tables
            for member, member_slots, member_gradients, rows, loss in zip(
                self._train_op.members, slots, gradients, sparse_gradients, losses, strict=True
            ):
                changed, new_slots = apply_member(
                    member, member_slots, state.variables, member_gradients, tables, aux["ids"], rows, loss
                )
                variables.update(changed)
                opt_state.append(new_slots)
            opt_state = tuple(opt_state)
            norms = {GRADIENT_NORM: _global_norm(gradients)} if GRADIENT_NORM in self._fetches else {}
            gradients = (gradients, sparse_gradients)
        loss, model_state = aux["loss"], aux["model_state"]
        outputs = {"loss": loss, **hyperparameters(opt_state), **norms, **aux["outputs"]}
        if scale is not None:
            finite = all_finite(gradients)
            variables, model_state, opt_state = where_finite(
                finite, (variables, model_state, opt_state), (dict(state.variables), state.model_state, slots)
            )
            opt_state = (opt_state,) if isinstance(self._train_op, CustomTrainOp) else opt_state
            opt_state = (*opt_state, next_loss_scale(scale, finite))
            outputs[LOSS_SCALE] = scale.scale
        return TrainState(_advance(state.clock, loss), variables, model_state, opt_state), outputs

    def _custom(
        self, train_op: CustomTrainOp, state: TrainState, scale: LossScale | None, batch: BatchData
    ) -> tuple[Arrays, PyTree, dict[str, Any], list[PyTree]]:
        results: list[dict[str, Any]] = []
        all_gradients: list[PyTree] = []

        def forward(values: Arrays) -> tuple[PyTree, dict[str, Any]]:
            loss, aux = _first(self._forward(values, {}, state, batch))
            return loss if scale is None else loss * scale.scale, aux

        def grad_fn(variables: Arrays) -> tuple[PyTree, dict[str, Any]]:
            run = rematerialised(forward, self._remat)
            (loss, aux), gradients = jax.value_and_grad(run, has_aux=True)(variables)
            if scale is not None:
                loss, gradients = aux["loss"], unscaled(gradients, scale)
            results.append(aux)
            all_gradients.append(gradients)
            return loss, gradients

        changed = train_op.update(dict(state.variables), state.opt_state, grad_fn)
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise ModelFnError(
                f"A custom train_op must return (variables, opt_state), given: {type(changed).__name__}."
            )
        variables, opt_state = changed
        if jax.tree.map(_aval, dict(variables)) != jax.tree.map(_aval, dict(state.variables)):
            raise ModelFnError(
                "A custom train_op must return the variables it was given, with the same names, shapes and dtypes."
            )
        aux = results[0] if results else _first(self._forward(state.variables, {}, state, batch))[1]
        return dict(variables), opt_state, aux, all_gradients

    def _gradients(self, train_op: Group, state: TrainState, scale: LossScale | None, batch: BatchData) -> Gradients:
        """Returns gradients of each member's own loss by its dense variables and lookups. One vjp serves all losses."""
        paths = assign_paths(train_op.members, list(state.variables))
        tables = self._discovery.tables
        differentiated = {name: state.variables[name] for matched in paths for name in matched if name not in tables}

        def member_gradients(batch: BatchData, model_state: Arrays, salt: jax.Array | None) -> Gradients:
            current = state._replace(model_state=model_state)
            deltas = sparse.zero_deltas(self._lookups(batch)) if tables else {}

            def forward(values: Arrays, deltas: Arrays) -> tuple[PyTree, dict[str, Any]]:
                return self._forward({**state.variables, **values}, deltas, current, batch, salt)

            losses, vjp, aux = jax.vjp(rematerialised(forward, self._remat), differentiated, deltas, has_aux=True)
            dense: list[Arrays] = []
            rows: list[Arrays] = []
            for index, matched in enumerate(paths):
                cotangents = tuple(
                    jnp.full_like(loss, float(index == position)) for position, loss in enumerate(losses)
                )
                if scale is not None:
                    cotangents = tuple(cotangent * scale.scale for cotangent in cotangents)
                by_variable, by_lookup = vjp(cotangents)
                if scale is not None:
                    by_variable, by_lookup = unscaled((by_variable, by_lookup), scale)
                dense.append({name: by_variable[name] for name in matched if name not in tables})
                rows.append({key: value for key, value in by_lookup.items() if key.rpartition("#")[0] in matched})
            return dense, rows, losses, aux

        spread = None if self._placement is None else self._placement.micro_batches
        dense, rows, losses, aux = over_micro_batches(
            member_gradients, self._accumulate_steps, batch, state.model_state, spread=spread
        )
        return self._where_variables_are(dense), rows, losses, aux

    def _where_variables_are(self, gradients: PyTree) -> PyTree:
        """Returns the gradients, split like their variables, so that a device never has the gradients of the whole
        model.
        """
        if self._shardings is None:
            return gradients
        where: PyTree = self._shardings.variables
        return [
            {name: jax.lax.with_sharding_constraint(value, where[name]) for name, value in member.items()}
            for member in gradients
        ]

    def _forward(
        self,
        variables: Arrays,
        deltas: Mapping[str, jax.Array],
        state: TrainState,
        batch: BatchData,
        salt: jax.Array | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def key() -> jax.Array:
            base = step_key(state.clock[SEED_LOW:], state.clock[STEP])
            return base if salt is None else jax.random.fold_in(base, salt)

        features, labels, weights = batch
        self._traces[ModeKeys.TRAIN] += 1
        with (
            applying_example_weights(weights),
            sparse.recording(deltas) as lookups,
            applying(variables, state.model_state, mode=ModeKeys.TRAIN, key=key, specs=self._discovery.specs) as scope,
        ):
            spec = self._model_fn.spec(features, labels, ModeKeys.TRAIN)
        train_op = normalize(spec.train_op, spec.loss)
        check_decisions(self._discovery.decisions, decisions_of(scope, spec, train_op, batch))
        if isinstance(train_op, Group):
            losses = tuple(_full_precision(member.loss).reshape(()) for member in train_op.members)
        else:
            losses = (spec.loss,)
        aux = {
            "loss": spec.loss,
            "model_state": scope.new_model_state,
            "outputs": self._outputs(spec, scope),
            "ids": dict(lookups.ids),
        }
        return losses, aux

    def _outputs(self, spec: EstimatorSpec, scope: Scope) -> Arrays:
        summaries = {name: output for name, output in scope.summaries.items() if output.kind != "text"}
        self.texts.update({name: output.value for name, output in scope.summaries.items() if output.kind == "text"})
        metrics, all_kinds = train_metrics(self._model_fn, spec, scope), self._model_fn.writes_summaries
        outputs = {name: output.value for name, output in summaries.items() if output.kind == "scalar" or all_kinds}
        outputs.update(metrics)
        predictions = spec.predictions if isinstance(spec.predictions, Mapping) else {"predictions": spec.predictions}
        tensors = {name: output.value for name, output in scope.tensors.items()}
        shown = {name: output.value for name, output in summaries.items() if name not in metrics}
        wanted = {**predictions, **tensors, **shown}
        outputs.update({name: value for name, value in wanted.items() if name in self._fetches and value is not None})
        outputs.update({name: value for name, value in tensors.items() if jnp.shape(value) == ()})
        return outputs

    def _lookups(self, batch: BatchData) -> Mapping[str, Any]:
        """Returns the shapes of the row-sparse lookups for these batch shapes.

        A shape that differs from that of the discovery costs one more abstract trace.
        """
        form = form_of(batch)
        if form not in self._lookup_shapes:
            abstract = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), batch)
            found = discover(self._model_fn, ModeKeys.TRAIN, abstract, known=self._discovery.specs)
            self._lookup_shapes[form] = found.lookups
        return self._lookup_shapes[form]


def _advance(clock: jax.Array, loss: jax.Array) -> jax.Array:
    # Elementwise on purpose: it compiles to one small kernel.
    place = np.arange(4)
    step = clock[STEP] + 1
    first_bad = jnp.where((clock[FIRST_BAD_STEP] == 0) & ~jnp.isfinite(loss), step, clock[FIRST_BAD_STEP])
    return jnp.where(place == STEP, step, jnp.where(place == FIRST_BAD_STEP, first_bad, clock))


def _full_precision(loss: jax.Array) -> jax.Array:
    loss = jnp.asarray(loss)
    return loss.astype(jnp.float32) if loss.dtype.itemsize < 4 else loss


def _first(result: tuple[tuple[object, ...], dict[str, Any]]) -> tuple[PyTree, dict[str, Any]]:
    losses, aux = result
    return losses[0], aux


def _aval(value: Any) -> tuple[Any, Any]:
    return jnp.shape(value), jnp.result_type(value)


def _global_norm(tree: PyTree) -> jax.Array:
    """Returns the root of the sum of all squares."""
    return jnp.sqrt(sum((jnp.sum(jnp.square(jnp.abs(leaf))) for leaf in jax.tree.leaves(tree)), jnp.zeros(())))
