"""The only module that uses private members of an Estimator, for functions in the layers above it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._inputs import BatchSource, InputFn, InputPosition, open_input
from estimator_core._loop.checkpointing import RunEvaluations
from estimator_core._loop.context import RunContext
from estimator_core._summaries import NO_SUMMARIES
from estimator_core._types import Params, PyTree
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError
from estimator_core.estimator import Estimator
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec, EvalSpec, TrainSpec, check_hooks

if TYPE_CHECKING:
    from estimator_core._loop.rehearsal import Rehearsal

# pyright: reportPrivateUsage=false


def evaluate_within(context: RunContext, spec: EvalSpec, checkpoint_path: str | None = None) -> dict[str, Any]:
    """Runs an EvalSpec inside a call. It replaces a result that a killed run may have recorded.

    Args:
        context: the context of the call around the evaluation. Its `checkpoint` and `decisions` apply to the
            evaluation.
        spec: the evaluation.
        checkpoint_path: the checkpoint to evaluate instead of the newest state.
    """
    estimator = _estimator(context)
    inside = context.within(
        mode=ModeKeys.EVAL,
        name=spec.name,
        directory=Path(estimator.eval_dir(spec.name)),
        summaries=NO_SUMMARIES,
        replaces=True,
        checkpoint=checkpoint_path or context.checkpoint,
    )
    hooks = (*check_hooks(spec.hooks, "hooks"), *estimator._slicing(spec.slices))
    return estimator._evaluate(inside, spec.input_fn, spec.steps, hooks, checkpoint_path)


def check_slices(estimator: Estimator, spec: EvalSpec) -> None:
    """Refuses slices that cannot be evaluated, before anything is trained."""
    estimator._slicing(spec.slices)


def entered(context: RunContext) -> contextlib.AbstractContextManager[None]:
    """Makes calls of the Estimator inside the block part of the call of a context."""
    return _estimator(context)._entered(context)


def _estimator(context: RunContext) -> Estimator:
    """Returns the Estimator of a call. The call itself knows only its contract."""
    assert isinstance(context.estimator, Estimator), "only an Estimator makes contexts"
    return context.estimator


def rehearsal(estimator: Estimator) -> Rehearsal:
    """Tries the inputs, model and exports of an Estimator with shapes only, before a run begins.

    Example:
        >>> import estimator_core as ec, numpy as np
        >>> def model_fn(features, mode):
        ...     return ec.EstimatorSpec(mode, predictions=features["x"] * ec.get_variable("slope", ()))
        >>> tried = rehearsal(ec.Estimator(model_fn, model_dir="unused"))
        >>> inputs = ec.inputs.numpy_input_fn({"x": np.zeros(8)}, batch_size=4, shuffle=False)
        >>> tried.trace("infer", next(tried.open(inputs, "infer"))).shape
        (4,)
    """
    from estimator_core._loop.programs import Programs
    from estimator_core._loop.rehearsal import Rehearsal

    bound = estimator._bound
    return Rehearsal(
        context=estimator._context(ModeKeys.EVAL),
        bound=bound,
        preparation=estimator._preparation,
        programs=Programs(bound),
    )


def rehearse(estimator: Estimator, train_spec: TrainSpec, eval_specs: Sequence[EvalSpec]) -> None:
    """Collects from plugins the errors that a run would raise later, before anything is written.

    Raises:
        ArgumentError: there are several faults. The message has all of them. A single fault is raised itself.
    """
    faults = estimator._plugins.rehearse(estimator, train_spec, eval_specs)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        told = (str(fault).replace("\n", "\n     ") for fault in faults)
        lines = "".join(f"\n  {at}. {text}" for at, text in enumerate(told, 1))
        error = ArgumentError(f"Nothing was started: {len(faults)} faults were found before the first step.{lines}")
        for note in dict.fromkeys(note for fault in faults for note in getattr(fault, "__notes__", ())):
            error.add_note(note)
        raise error


@contextlib.contextmanager
def outermost(estimator: Estimator) -> Generator[RunContext]:
    """Yields a context for evaluations and exports outside training calls.

    At the end, its event files are closed and their contents are published.
    """
    context = estimator._context(ModeKeys.EVAL)
    with contextlib.closing(context.results):
        yield context
    publish(estimator)


def publish(estimator: Estimator) -> None:
    """Publishes the files of a call outside training, if model_dir is a copy of a URL."""
    estimator._place.written(estimator._devices.processes.index)


def complete_export(estimator: Estimator, path: str) -> None:
    """Fetches missing files of an export of an earlier process, if model_dir is a copy of a URL."""
    estimator._place.complete_export(path)


def train_within(estimator: Estimator, spec: TrainSpec, evaluations: RunEvaluations | None) -> None:
    """Runs a TrainSpec, with evaluations at its checkpoints if there are any."""
    estimator._train(spec.input_fn, spec.hooks, None, spec.max_steps, spec.saving_listeners, evaluations=evaluations)


def training_batches(estimator: Estimator, input_fn: InputFn, position: InputPosition | None = None) -> BatchSource:
    """Returns the batches that `train` would draw, with host transforms applied, for code that runs the steps itself.

    Args:
        estimator: the Estimator.
        input_fn: the function that returns batches.
        position: the position at which to continue. None: the beginning.

    Example:
        >>> import estimator_core as ec, numpy as np
        >>> estimator = ec.Estimator(lambda features: None, model_dir="unused")
        >>> input_fn = ec.inputs.numpy_input_fn({"x": np.zeros(64)}, batch_size=48, num_epochs=1, shuffle=False)
        >>> [batch.size for batch in training_batches(estimator, input_fn)]
        [48, 16]
    """
    config, prepared = estimator.config, estimator._prepared(input_fn)
    return open_input(prepared, mode=ModeKeys.TRAIN, params=estimator.params, config=config, position=position)


def with_model_fn(estimator: Estimator, model_fn: Callable[..., Any], config: RunConfig | None = None) -> Estimator:
    """Returns an Estimator like the given one, with another model_fn.

    Host transforms, the data contract and initial values are those of the given Estimator.

    Args:
        estimator: the Estimator to start from. It does not change. The new model_fn may call its `model_fn`.
        model_fn: `(features, labels, mode, config) -> EstimatorSpec`, like `Estimator.model_fn`.
        config: the config of the new Estimator, for example with another model_dir. None: the config of the given one.

    Example:
        >>> import estimator_core as ec
        >>> def model_fn(features, mode):
        ...     return ec.EstimatorSpec(mode, predictions=features["x"] * ec.get_variable("slope", ()))
        >>> estimator = ec.Estimator(model_fn, "runs/slope")
        >>> ec.with_model_fn(estimator, estimator.model_fn, estimator.config.replace(model_dir="runs/other")).model_dir
        'runs/other'
    """

    def bound(features: PyTree, labels: PyTree, mode: str, config: Any, params: Params) -> EstimatorSpec:
        return model_fn(features, labels, mode, config)

    return Estimator(
        bound if estimator.params is not None else functools.partial(bound, params=None),
        config=estimator.config if config is None else config,
        params=estimator.params,
        warm_start_from=estimator._warm_start,
        host_transforms=estimator._preparation.features,
        label_transforms=estimator._preparation.labels,
        data_contract=estimator._preparation.contract,
        plugins=estimator._plugins,
    )
