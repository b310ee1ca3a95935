"""Discovery: one abstract trace that collects everything about a model before anything is computed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer

from estimator_core._inputs.source import IS_REAL_EXAMPLE
from estimator_core._metrics.example_weights import applying_example_weights
from estimator_core._model.scope import Scope, declaring
from estimator_core._model.shared_programs import computed_once
from estimator_core._model.variables import VariableSpec
from estimator_core._step import sparse
from estimator_core._step.model_fn import BoundModelFn
from estimator_core._step.optimizer import init_opt_state, reject_leaks
from estimator_core._step.precision import LOSS_SCALE, BatchData, scales_loss
from estimator_core._step.train_op import CustomTrainOp, Group, TrainOp, assign_paths, hyperparameter_kinds, normalize
from estimator_core._types import Mask, PyTree
from estimator_core.errors import ModelFnError
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec, Scaffold

if TYPE_CHECKING:
    from estimator_core._model.initial_values import InitialValues

_log = logging.getLogger("estimator_core")
#: Decisions that may depend on the shapes of a batch, because a model may skip a part for a short batch.
_BY_SHAPE = ("uses the variables", "requests first values of", "returns the outputs")


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """The decisions of model_fn in Python in one trace.

    Attributes:
        batch: structure, shapes and dtypes of the traced features, labels and weights.
        names: the names that each decision concerns, by the words for the decision.
    """

    batch: object = None
    names: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """The results of one abstract trace of model_fn.

    Attributes:
        mode: the mode of the trace.
        specs: every variable known so far, by path.
        training_chief_hooks, training_hooks, scaffold, train_op: the static parts of the EstimatorSpec (train_op
            normalised, its losses unusable).
        outputs: the kinds of the outputs of a step by name ("scalar", "histogram", "tensor", ...).
        predictions: shapes and dtypes of the predictions.
        requests: initial values that model_fn requested.
        lookups: shapes and dtypes of the row-sparse lookups. `tables` has their variables, and the access of each.
        opt_state: shapes and dtypes of the optimizer state (TRAIN).
        decisions: the decisions that every later trace must repeat (TRAIN).
    """

    mode: str
    specs: Mapping[str, VariableSpec]
    training_chief_hooks: Sequence[Hook]
    training_hooks: Sequence[Hook]
    scaffold: Scaffold | None
    train_op: TrainOp | None
    outputs: Mapping[str, str]
    predictions: PyTree
    requests: Sequence[InitialValues]
    lookups: Mapping[str, tuple[tuple[int, ...], np.dtype]]
    tables: Mapping[str, sparse.RowAccess]
    opt_state: PyTree
    decisions: Decisions

    @property
    def trainable(self) -> dict[str, VariableSpec]:
        """The specs of the trainable variables."""
        return {name: spec for name, spec in self.specs.items() if spec.trainable}

    @property
    def model_state(self) -> dict[str, VariableSpec]:
        """The specs of the other variables."""
        return {name: spec for name, spec in self.specs.items() if not spec.trainable}

    @property
    def asks_for_values(self) -> bool:
        """Whether model_fn requests initial values from a source."""
        return bool(self.requests) or (self.scaffold is not None and self.scaffold.init_fn is not None)


def discover(
    model_fn: BoundModelFn,
    mode: str,
    batch: BatchData,
    *,
    known: Mapping[str, VariableSpec],
    fresh: bool = False,
) -> Discovery:
    """Traces model_fn abstractly in one mode.

    Args:
        model_fn: the bound model_fn.
        mode: one of ModeKeys.
        batch: the arrays or ShapeDtypeStructs of one batch.
        known: variables declared by earlier traces.
        fresh: whether first values will be computed for the variables.

    Raises:
        ModelFnError, VariableError: model_fn breaks its contract.
    """
    found: dict[str, Any] = {}

    def trace(features: PyTree, labels: PyTree, weights: Mask) -> PyTree:
        with (
            applying_example_weights(weights) as ignores_padding,
            sparse.recording() as lookups,
            declaring(known, mode=mode, padded=weights is not None, fresh=fresh) as scope,
        ):
            spec = model_fn.spec(features, labels, mode)
        if mode == ModeKeys.TRAIN and ignores_padding():
            report_padded_loss(features, mode)
        found.update(scope=scope, spec=spec, lookups=lookups)
        return spec.predictions

    predictions = jax.eval_shape(trace, *batch)
    spec: EstimatorSpec = found["spec"]
    scope: Scope = found["scope"]
    lookups: sparse.Lookups = found["lookups"]
    specs = dict(scope.specs)
    train_op = opt_state = None
    decisions = Decisions()
    tables = dict(lookups.tables)
    if mode == ModeKeys.TRAIN:
        train_op, opt_state = _discover_optimizer(spec, specs, tables, scaled=scales_loss(model_fn.precision))
        decisions = decisions_of(scope, spec, train_op, batch)
    metrics = train_metrics(model_fn, spec, scope) if mode == ModeKeys.TRAIN else {}
    reject_tracers_in_hooks(spec)
    return Discovery(
        mode=mode,
        specs=specs,
        training_chief_hooks=spec.training_chief_hooks,
        training_hooks=spec.training_hooks,
        scaffold=spec.scaffold,
        train_op=train_op,
        outputs=_kinds(scope, opt_state, model_fn.precision) | dict.fromkeys(metrics, "metric"),
        predictions=predictions,
        requests=tuple(scope.requests),
        lookups=dict(lookups.shapes),
        tables=tables,
        opt_state=opt_state,
        decisions=decisions,
    )


def _kinds(scope: Scope, opt_state: PyTree, precision: str) -> dict[str, str]:
    """Returns the kinds of the outputs of a step by name, without those of metrics."""
    declared = [*scope.summaries.items(), *scope.tensors.items()]
    kinds = {"loss": "scalar"} | {name: output.kind for name, output in declared}
    if opt_state is None:
        return kinds
    scale = {LOSS_SCALE: "scalar"} if scales_loss(precision) else {}
    return kinds | hyperparameter_kinds(opt_state) | scale


def train_metrics(model_fn: BoundModelFn, spec: EstimatorSpec, scope: Scope) -> dict[str, Any]:
    """Returns the metrics of a training step.

    A summary of the same name that is written replaces a metric, as in TensorFlow.
    """
    kept = {name for name, one in scope.summaries.items() if one.kind == "scalar" or model_fn.writes_summaries}
    return {name: one for name, one in (spec.eval_metric_ops or {}).items() if name not in kept}


def decisions_of(scope: Scope, spec: EstimatorSpec, train_op: TrainOp, batch: PyTree) -> Decisions:
    """Returns the decisions of model_fn in Python in a trace of mode TRAIN.

    Every later trace must make the same ones.
    """
    trainable = [name for name, known in scope.specs.items() if known.trainable]
    members = assign_paths(train_op.members, trainable) if isinstance(train_op, Group) else ()
    predictions = spec.predictions if isinstance(spec.predictions, Mapping) else {}
    names: dict[str, frozenset[str]] = {
        "uses the variables": frozenset(scope.met),
        "trains the variables": frozenset(f"{name} (by {at})" for at, own in enumerate(members, 1) for name in own),
        "requests first values of": frozenset(
            name for request in scope.requests for name in getattr(request, "variables", (type(request).__name__,))
        ),
        "returns the outputs": frozenset(
            map(str, [*scope.summaries, *scope.tensors, *(spec.eval_metric_ops or {}), *predictions])
        ),
    }
    return Decisions(batch=form_of(batch), names=names)


def form_of(batch: PyTree) -> object:
    """Returns the structure, shapes and dtypes of features, labels and weights."""
    leaves, structure = jax.tree.flatten(batch)
    return structure, tuple((tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves)


def check_decisions(first: Decisions, later: Decisions) -> None:
    """Refuses a later trace with other decisions.

    For a batch of another form, only the trained variables must be the same.

    Raises:
        ModelFnError: the decisions differ. The message names the difference.
    """
    for told, names in first.names.items():
        others = later.names[told]
        if names != others and not (told in _BY_SHAPE and first.batch != later.batch):
            raise ModelFnError(
                f"model_fn behaves differently each time it is traced. The first trace of mode 'train' {told} "
                f"{sorted(names - others)}, which a later one does not; the later one has "
                f"{sorted(others - names)} instead. model_fn must not depend on anything that changes between calls, "
                "such as a counter, a Python random number, files, or objects that an earlier call changed."
            )


def _discover_optimizer(
    spec: EstimatorSpec, specs: Mapping[str, VariableSpec], tables: Mapping[str, sparse.RowAccess], *, scaled: bool
) -> tuple[TrainOp, PyTree]:
    train_op = normalize(spec.train_op, None)
    trainable = {name: jax.ShapeDtypeStruct(item.shape, item.dtype) for name, item in specs.items() if item.trainable}
    if not trainable:
        raise ModelFnError(
            "model_fn declares no trainable variable in mode 'train': there is nothing to train. Declare one with "
            "ec.get_variable or ec.module."
        )
    reject_leaks(train_op)
    if tables and isinstance(train_op, CustomTrainOp):
        raise ModelFnError(
            f"A custom train_op gets no gradients of the rows that ec.sparse_lookup reads from {sorted(tables)}. Use "
            "an optax optimizer or ec.minimize, or read the table with ec.get_variable."
        )
    opt_state = jax.eval_shape(lambda variables: init_opt_state(train_op, variables, tables, scaled=scaled), trainable)
    return train_op, opt_state


def report_padded_loss(features: PyTree, mode: str) -> None:
    """Warns that a loss counts padding rows, unless the input itself marks them in a feature."""
    if not (isinstance(features, Mapping) and IS_REAL_EXAMPLE in features):
        _log.warning(
            'Batches of mode %r are padded (ragged="pad"), but model_fn does not call ec.example_weights(), so its '
            'loss counts padded rows as examples. Weight the loss with it, or use ragged="exact".',
            mode,
        )


def reject_tracers_in_hooks(spec: EstimatorSpec) -> None:
    """Refuses a hook that keeps an array of the trace in which the hook was created.

    Raises:
        ModelFnError: a hook keeps such an array. The message names the hook and its attribute.
    """
    for hook in [*spec.training_chief_hooks, *spec.training_hooks, *spec.evaluation_hooks, *spec.prediction_hooks]:
        for name, value in vars(hook).items() if hasattr(hook, "__dict__") else ():
            if any(isinstance(leaf, Tracer) for leaf in jax.tree_util.tree_leaves(value)):
                raise ModelFnError(
                    f"The hook {type(hook).__name__} keeps a traced array in {name!r}. Hooks outlive the trace of "
                    "model_fn: give the value a name with ec.tensor(name, value) "
                    f"or ec.summary.scalar(name, value), and let the hook read out[name]."
                )


def initial_opt_state(
    discovery: Discovery, variables: Mapping[str, jax.Array], shardings: PyTree = None, *, scaled: bool = False
) -> PyTree:
    """Returns the optimizer state of a fresh run, computed on the variables' devices.

    Args:
        discovery: the discovery of the TRAIN mode.
        variables: the values of the variables.
        shardings: the shardings of the optimizer state, so that each device computes only its part. None with one
            device.
        scaled: whether the scale of the loss is part of the optimizer state.
    """
    if discovery.train_op is None:
        return ()
    train_op, tables = discovery.train_op, discovery.tables

    def compute(values: Mapping[str, jax.Array]) -> PyTree:
        return init_opt_state(train_op, values, tables, scaled=scaled)

    if shardings is None:
        return computed_once(compute, dict(variables))
    return jax.jit(compute, out_shardings=shardings)(dict(variables))
