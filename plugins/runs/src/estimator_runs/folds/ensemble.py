"""All folds as one model that can be exported. Its predictions are the mean of theirs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.checkpoint import load_variables
from estimator_core.errors import ArgumentError
from estimator_core.inputs import numpy_input_fn
from estimator_runs.folds.averaging import averaged
from estimator_runs.folds.fold import Folds, fold_experiment
from estimator_runs.workers import owned


def export_ensemble(folds: Folds, *, format: str = "stablehlo") -> str:
    """Exports all folds as one model below `ensemble/export` of the output directory.

    Args:
        folds: the folds, which must all have ended.
        format: the name of an export format.

    Returns:
        The path of the export, which was read back and compared with the ensemble.

    Raises:
        ArgumentError: a fold has not ended, the file does not define the form of requests, or the folds have learned
            different names or fills from their rows.
    """
    receiver = receiver_of(folds)
    with owned(folds.folder / "ensemble") as mine:
        if not mine:
            raise ArgumentError(f"Another process exports the folds of {folds.folder}.")
        made = ensemble(folds)
        assets = {f"folds/{fold}.json": str(folds.model_dir(fold) / "fold.json") for fold in range(len(folds.splits))}
        return made.export_saved_model(str(Path(made.model_dir) / "export"), receiver, assets, format=format)


def receiver_of(folds: Folds) -> Callable[[], Any]:
    """Returns the function that defines the form of requests.

    Raises:
        ArgumentError: neither the file nor the program defines it.
    """
    receiver = folds.read.program().serving_input_receiver_fn
    if receiver is None:
        raise ArgumentError(
            "An export needs to know what requests look like: write [serving] in the file, or "
            "serving_input_receiver_fn in the program."
        )
    return receiver


def ensemble(folds: Folds) -> ec.Estimator:
    """Returns an Estimator whose predictions are the mean of those of all folds, with a checkpoint at step 0.

    The variables of each fold are below `fold_<number>/`.

    Raises:
        ArgumentError: a fold has not ended, or the folds have learned different names or fills from their rows.
    """
    waiting = [fold for fold in range(len(folds.splits)) if not folds.done(fold)]
    if waiting:
        raise ArgumentError(f"Folds {waiting} of {folds.folder} have not ended. Start again to continue.")
    estimators: list[ec.Estimator] = [fold_experiment(folds, fold).estimator for fold in range(len(folds.splits))]
    values = [load_variables(one.model_dir) for one in estimators]
    _check_learned_alike(values)
    first = folds.rows.take(np.arange(1))
    for one in estimators:  # the names and fills that a model has learned are known after an input was opened
        next(iter(one.predict(numpy_input_fn(dict(first.features), first.labels, batch_size=1, shuffle=False))))
    config = estimators[0].config.replace(model_dir=str(folds.folder / "ensemble"), default_hooks=False)
    made = ec.with_model_fn(estimators[0], _model_fn([one.model_fn for one in estimators], values), config)
    if made.latest_checkpoint() is None:
        rows = numpy_input_fn(
            dict(folds.rows.features), folds.rows.labels, batch_size=len(folds.rows), num_epochs=1, shuffle=False
        )
        made.train(rows, hooks=[_BeforeTheFirstStep()])
    return made


class _BeforeTheFirstStep(ec.Hook):
    """Ends a training call before its first step, so that only the initial values are saved."""

    def after_create(self, run: ec.Run) -> None:
        run.request_stop("the folds are trained already")


def _model_fn(parts: Sequence[Callable[..., Any]], values: Sequence[Mapping[str, np.ndarray]]) -> Callable[..., Any]:
    first = {f"fold_{fold}/{name}": value for fold, found in enumerate(values) for name, value in found.items()}

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ec.EstimatorSpec:
        specs: list[ec.EstimatorSpec] = []
        for fold, part in enumerate(parts):
            with ec.variable_scope(f"fold_{fold}"):
                specs.append(part(features, None, ec.ModeKeys.PREDICT, config))
        if mode != ec.ModeKeys.PREDICT:
            scaffold = ec.Scaffold(init_fn=lambda initial: {name: first[name] for name in initial})
            return ec.EstimatorSpec(mode, loss=jnp.zeros(()), train_op=optax.set_to_zero(), scaffold=scaffold)
        return ec.EstimatorSpec(
            mode,
            predictions=averaged([one.predictions for one in specs]),
            export_outputs=_outputs([one.export_outputs for one in specs]),
            prediction_transforms=specs[0].prediction_transforms,
        )

    return model_fn


def _outputs(found: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Returns the signatures of the ensemble: those of a fold, with the combined arrays of all."""
    if found[0] is None:
        return None
    made: dict[str, Any] = {}
    for name, one in found[0].items():
        names = [field.name for field in dataclasses.fields(one) if field.name != "class_names"]
        arrays = averaged([{key: getattr(each[name], key) for key in names} for each in found if each is not None])
        made[name] = dataclasses.replace(one, **arrays)
    return made


def _check_learned_alike(values: Sequence[Mapping[str, np.ndarray]]) -> None:
    """Checks that the folds keep the same bytes about their rows: names of classes and fills.

    Raises:
        ArgumentError: they differ, so one request could not be prepared for all folds.
    """
    for fold, found in enumerate(values):
        for name, value in found.items():
            other = values[0].get(name)
            if not np.issubdtype(value.dtype, np.uint8):
                continue
            if other is None or other.shape != value.shape or other.tobytes() != value.tobytes():
                raise ArgumentError(
                    f"Fold {fold} has learned a different {name!r} from its rows than fold 0, so one export cannot "
                    "prepare requests for both. Set the names of classes and the fill values in the file."
                )
