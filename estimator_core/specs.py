"""`EstimatorSpec`, which a model_fn returns, and the specs that `train_and_evaluate` accepts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

from estimator_core._files import on_one_line
from estimator_core._hook_members import refuse_deferred
from estimator_core._moved import attributes_of
from estimator_core._wrong_arguments import by_name, leaving_out
from estimator_core.errors import ArgumentError, ArgumentTypeError, ModelFnError, check_count, is_integer
from estimator_core.modes import ModeKeys

__all__ = [
    "EstimatorSpec",
    "EvalSpec",
    "Scaffold",
    "TrainSpec",
    "check_exporters",
    "check_hooks",
    "check_input_fn",
    "check_listeners",
    "check_steps",
]

_RESERVED_METRICS = ("loss", "global_step")
_HOOK_METHODS = ("begin", "after_create", "before_step", "after_step", "end", "next_step")
_LISTENER_METHODS = ("begin", "before_save", "after_save", "end")


@dataclass(frozen=True, kw_only=True)
class Scaffold:
    """Sets initial values that are computed on the host.

    Args:
        init_fn: a function that is called once before the first step of a fresh run, with a dict of the initial values
            (numpy arrays) by path. It returns a dict of the values to replace. It is ignored if model_dir has a
            checkpoint.
    """

    init_fn: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None

    if not TYPE_CHECKING:
        __getattr__ = attributes_of("Scaffold")


_NO_OPS = (None, "there are no ops; give init_fn=")
_NO_SCAFFOLD: dict[str, tuple[None, str]] = {
    **dict.fromkeys(("init_op", "init_feed_dict", "ready_op", "local_init_op", "summary_op"), _NO_OPS),
    "saver": (None, "the run saves, as RunConfig(keep_checkpoint_max=..., save_checkpoints_steps=...) says"),
}
Scaffold.__init__ = leaving_out("Scaffold", _NO_SCAFFOLD)(Scaffold.__init__)  # type: ignore[method-assign]


@dataclass(frozen=True)
class EstimatorSpec:
    """The model in one mode, as model_fn returns it.

    Args:
        mode: the mode that model_fn was called with.
        predictions: an array or a dict of arrays with a leading batch axis; required in PREDICT.
        loss: a scalar, or an array of one element; required in TRAIN and EVAL.
        train_op: an `optax.GradientTransformation`, `ec.minimize(...)`, `ec.group(...)` or a custom function; required
            in TRAIN.
        eval_metric_ops: streaming metrics by name. In TRAIN they become outputs of the step.
        export_outputs: `ec.export.*Output` by signature name, for PREDICT.
        training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: hooks of the run. They refer to
            tensors by name.
        scaffold: a `Scaffold`.
        prediction_transforms: `HostTransform`s applied on the host to the predictions of a batch, for example to turn
            ids into strings.

    Raises:
        ModelFnError: a field that the mode requires is missing, or a field has the wrong type.

    Example:
        >>> EstimatorSpec("infer", predictions={"x": 1.0}).mode
        'infer'

    Source: `tf.estimator.EstimatorSpec`.
    """

    mode: str
    _: KW_ONLY
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Mapping[str, Any] | None = None
    export_outputs: Mapping[str, Any] | None = None
    training_chief_hooks: Sequence[Any] = ()
    training_hooks: Sequence[Any] = ()
    evaluation_hooks: Sequence[Any] = ()
    prediction_hooks: Sequence[Any] = ()
    scaffold: Scaffold | None = None
    prediction_transforms: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if self.mode not in ModeKeys.ALL:
            raise ModelFnError(f"mode must be one of ModeKeys {ModeKeys.ALL}, given: {self.mode!r}.")
        _require_fields(self)
        object.__setattr__(self, "loss", _as_scalar(self.loss))
        _check_predictions(self.predictions)
        _check_metrics(self.eval_metric_ops)
        if self.export_outputs is not None and not isinstance(self.export_outputs, Mapping):
            raise ModelFnError(f"export_outputs must be a dict, given: {self.export_outputs!r}.")
        for name in ("training_chief_hooks", "training_hooks", "evaluation_hooks", "prediction_hooks"):
            object.__setattr__(self, name, check_hooks(getattr(self, name), f"EstimatorSpec.{name}", ModelFnError))
        if self.scaffold is not None and not isinstance(self.scaffold, Scaffold):
            raise ModelFnError(f"scaffold must be an ec.Scaffold, given: {self.scaffold!r}.")

    def _replace(self, **changes: Any) -> EstimatorSpec:
        """Returns a copy with some fields changed. The mode cannot be changed."""
        if changes.get("mode", self.mode) != self.mode:
            raise ModelFnError(f"mode of EstimatorSpec cannot be changed (from {self.mode!r} to {changes['mode']!r}).")
        return replace(self, **changes)


@dataclass(frozen=True)
class TrainSpec:
    """The training part of `train_and_evaluate`.

    Args:
        input_fn: the function that returns the training batches.
        max_steps: the global step at which training ends. None: training ends with the input.
        hooks: hooks of the training run.
        saving_listeners: `CheckpointListener`s called around each checkpoint.

    Example:
        >>> TrainSpec(lambda: iter([]), max_steps=10).max_steps
        10

    Source: `tf.estimator.TrainSpec`.
    """

    input_fn: Callable[..., Any]
    max_steps: int | None = None
    _: KW_ONLY
    hooks: Sequence[Any] = ()
    saving_listeners: Sequence[Any] = ()

    def __post_init__(self) -> None:
        check_input_fn(self.input_fn)
        check_steps("max_steps", self.max_steps)
        object.__setattr__(self, "hooks", check_hooks(self.hooks, "TrainSpec.hooks"))
        object.__setattr__(self, "saving_listeners", check_listeners(self.saving_listeners))


@dataclass(frozen=True)
class EvalSpec:
    """One evaluation of `train_and_evaluate`.

    Args:
        input_fn: the function that returns the evaluation batches.
        steps: number of batches. None (the default): one pass over the whole input. (tf.estimator: 100.)
        name: suffix of the directory of the evaluation, `eval_<name>`.
        hooks: hooks of the evaluation.
        exporters: an Exporter, or several with unique names. Each runs after every evaluation.
        start_delay_secs: seconds that a separate evaluator process waits before its first evaluation.
        throttle_secs: the least number of seconds between the starts of two evaluations. Default 0: evaluates every
            checkpoint. (tf.estimator: 600.)
        every_steps: also evaluates at multiples of this number of steps, with or without a checkpoint. Exporters and
            separate evaluator processes run at checkpoints only. None (the default): evaluates at checkpoints only.
        slices: names of features, and tuples of names. The hook "slices" of estimator-slices also computes every metric
            of the model for each of their values.

    Example:
        >>> EvalSpec(lambda: iter([]), name="validation").steps is None
        True

    Source: `tf.estimator.EvalSpec`.
    """

    input_fn: Callable[..., Any]
    _: KW_ONLY
    steps: int | None = None
    name: str | None = None
    hooks: Sequence[Any] = ()
    exporters: Any = ()
    start_delay_secs: float = 120
    throttle_secs: float = 0
    every_steps: int | None = None
    slices: Sequence[Any] = ()

    def __post_init__(self) -> None:
        check_input_fn(self.input_fn)
        check_steps("steps", self.steps)
        check_steps("every_steps", self.every_steps)
        if self.name is not None and not isinstance(self.name, str):
            raise ArgumentTypeError(f"`name` must be string, given: {self.name!r}.")
        if self.name is not None and (not on_one_line("`name`", self.name) or "/" in self.name):
            raise ArgumentError(f"`name` must be a non-empty string without '/' (a directory), given: {self.name!r}.")
        for field in ("start_delay_secs", "throttle_secs"):
            value = getattr(self, field)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0 or math.isinf(value):
                raise ArgumentError(f"Must specify {field} >= 0, given: {value!r}.")
        object.__setattr__(self, "hooks", check_hooks(self.hooks, "EvalSpec.hooks"))
        object.__setattr__(self, "exporters", check_exporters(self.exporters))
        object.__setattr__(
            self, "slices", _as_tuple(self.slices, "EvalSpec.slices", "a list of feature names", ArgumentTypeError)
        )


_OF_A_MODE = ("predictions", "loss", "train_op", "eval_metric_ops", "export_outputs")
_OF_A_RUN = ("training_chief_hooks", "training_hooks", "scaffold", "evaluation_hooks", "prediction_hooks")
_EVALUATION = ("steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs")
_TRAINING = ("max_steps", "hooks", "saving_listeners")
_name_others = by_name("EstimatorSpec", ("mode", *_OF_A_MODE, *_OF_A_RUN), 1)
EstimatorSpec.__init__ = _name_others(EstimatorSpec.__init__)  # type: ignore[method-assign]
EvalSpec.__init__ = by_name("EvalSpec", ("input_fn", *_EVALUATION), 1)(EvalSpec.__init__)  # type: ignore[method-assign]
TrainSpec.__init__ = by_name("TrainSpec", ("input_fn", *_TRAINING), 2)(TrainSpec.__init__)  # type: ignore[method-assign]


def check_input_fn(input_fn: Any) -> None:
    """Refuses an argument that cannot be an input_fn."""
    if not callable(input_fn):
        raise ArgumentTypeError(
            f"`input_fn` must be callable, given: {type(input_fn).__name__}. Wrap arrays with "
            "ec.inputs.numpy_input_fn(...), or a dataset with `lambda: dataset`."
        )


def check_steps(name: str, value: Any) -> None:
    """Refuses a number of steps that is not None or a positive int."""
    if value is None:
        return
    if is_integer(value) and -(2**63) < value <= 0:
        raise ArgumentError(f"Must specify {name} > 0, given: {value}.")
    check_count(name, value)


def check_hooks(hooks: Any, where: str, error: type[Exception] = ArgumentTypeError) -> tuple[Any, ...]:
    """Returns the hooks as a tuple. Refuses an item that is not a `Hook`."""
    items = _as_tuple(hooks, where, "a list of ec.Hook", error)
    for hook in items:
        if isinstance(hook, type):
            raise error(
                f"{where}: hooks must be ec.Hook instances, given the class {hook.__name__}; write "
                f"{hook.__name__}(...)."
            )
        missing = [method for method in _HOOK_METHODS if getattr(hook, method, None) is None]
        if missing:
            raise error(
                f"{where}: hooks must be ec.Hook instances, given: {hook!r} (without {', '.join(missing)}). Derive it "
                "from ec.Hook."
            )
    return items


def check_listeners(listeners: Any) -> tuple[Any, ...]:
    """Returns the listeners as a tuple. Refuses an item that is not a `CheckpointListener`."""
    items = _as_tuple(listeners, "saving_listeners", "a list of ec.CheckpointListener", ArgumentTypeError)
    for listener in items:
        if isinstance(listener, type) or not all(callable(getattr(listener, m, None)) for m in _LISTENER_METHODS):
            raise ArgumentTypeError(
                f"saving_listeners must be a list of ec.CheckpointListener, given: {listener!r}. Derive it from "
                "ec.CheckpointListener."
            )
        refuse_deferred(listener, _LISTENER_METHODS, f"saving_listeners: {listener!r}", ArgumentTypeError)
    return items


def check_exporters(exporters: Any) -> tuple[Any, ...]:
    """Returns the exporters as a tuple.

    Refuses an item that is not an `Exporter`, and names that are empty, paths or not unique.
    """
    if callable(getattr(exporters, "export", None)):
        exporters = (exporters,)
    items = _as_tuple(exporters, "`exporters`", "an Exporter, an iterable of Exporter, or None", ArgumentTypeError)
    names: list[str] = []
    for exporter in items:
        if isinstance(exporter, type) or not callable(getattr(exporter, "export", None)):
            raise ArgumentTypeError(
                f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {exporter!r}."
            )
        name = getattr(exporter, "name", None)
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"An Exporter cannot have a name that is `None` or empty. Exporter: {exporter!r}.")
        if "/" in on_one_line("The name of an Exporter", name) or name in (".", ".."):
            raise ArgumentError(f"The name of an Exporter names a directory, so it has no '/'. Given: {name!r}.")
        refuse_deferred(exporter, ("export",), f"`exporters`: {exporter!r}", ArgumentTypeError)
        names.append(name)
    if len(set(names)) != len(names):
        raise ArgumentError(f"`exporters` must have unique names. All exporter names: {names}.")
    return items


def _as_tuple(value: Any, where: str, expected: str, error: type[Exception]) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        raise error(f"{where} must be {expected}, given: {value!r}.")
    return tuple(value)


def _require_fields(spec: EstimatorSpec) -> None:
    by_mode: dict[str, tuple[str, ...]] = {
        ModeKeys.TRAIN: ("train_op", "loss"),
        ModeKeys.EVAL: ("loss",),
        ModeKeys.PREDICT: ("predictions",),
    }
    for field in by_mode[spec.mode]:
        if getattr(spec, field) is None:
            raise ModelFnError(
                f"Missing {field}. model_fn must return EstimatorSpec(mode, {field}=...) in mode {spec.mode!r}."
            )


def _as_scalar(loss: Any) -> Any:
    if loss is None:
        return None
    shape = getattr(loss, "shape", () if isinstance(loss, (int, float)) else None)
    if shape is None:
        raise ModelFnError(f"loss must be an array, given: {loss!r}.")
    if math.prod(shape) != 1:
        raise ModelFnError(
            f"Loss must be scalar, given: shape {tuple(shape)}. Reduce it over the batch, for example with .mean()."
        )
    dtype = str(getattr(loss, "dtype", "float32"))
    if "float" not in dtype:
        raise ModelFnError(f"Loss must be a floating point number, given: dtype {dtype}.")
    array: Any = loss
    return array if shape == () else array.reshape(())


def _check_predictions(predictions: Any) -> None:
    if predictions is None:
        return
    items = predictions.items() if isinstance(predictions, Mapping) else [("predictions", predictions)]
    for key, value in items:
        if not hasattr(value, "shape") and not isinstance(value, (int, float)):
            raise ModelFnError(f"predictions[{key!r}] must be an array, given: {value!r}.")


def _check_metrics(metrics: Any) -> None:
    if metrics is None:
        return
    if not isinstance(metrics, Mapping):
        raise ModelFnError(f"eval_metric_ops must be a dict, given: {metrics!r}.")
    for name, metric in metrics.items():
        if not isinstance(name, str) or not name:
            raise ModelFnError(f"eval_metric_ops: names must be non-empty strings, given: {name!r}.")
        if name in _RESERVED_METRICS:
            raise ModelFnError(
                f'Metric with name "{name}" is not allowed, because Estimator already defines a default metric with '
                "the same name."
            )
        if isinstance(metric, type) or not (
            callable(getattr(metric, "merge", None)) and callable(getattr(metric, "compute", None))
        ):
            raise ModelFnError(
                f"Values of eval_metric_ops must be streaming metrics with merge and compute, given: {metric!r} for "
                f"key: {name}. "
                f"Build one with ec.metrics.mean(...), ec.metrics.accuracy(...)."
            )
