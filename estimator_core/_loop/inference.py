"""The state evaluate, predict and export work on."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from estimator_core._checkpoint import (
    CheckpointItems,
    checkpoint_step,
    latest_checkpoint,
    read_checkpoint,
    read_latest,
    read_manifest,
    resolve_checkpoint,
)
from estimator_core._checkpoint.restore import check_fits
from estimator_core._loop.engine import Engine, Overrides
from estimator_core._plugins import compare_versions
from estimator_core._step import TrainState
from estimator_core.errors import CheckpointNotFoundError
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")
_ITEMS = ("variables", "model_state")


def state_for_inference(
    engine: Engine,
    model_dir: str,
    mode: str,
    batch: Any,
    checkpoint_path: str | None,
    overrides: Overrides,
    *,
    warm_start: bool,
) -> TrainState:
    """A state for a mode: of the checkpoint asked for, the live one, the newest checkpoint, or initial values.

    EVAL gets the live arrays themselves, since nothing trains until it returns; PREDICT a snapshot.

    Args:
        engine: of the Estimator.
        model_dir: where checkpoints are looked for.
        mode: what the state is for.
        batch: the first batch, needed to discover a model that has no state yet; None where there is none.
        checkpoint_path: the checkpoint asked for.
        overrides: initial values from elsewhere.
        warm_start: whether there are such values by `warm_start_from`.

    Raises:
        CheckpointNotFoundError: when nothing has been trained and initial values were not asked for.
    """
    if engine.config.allow_cast and batch is not None:
        engine.discovery(mode, batch)  # what the model declares decides, not what a checkpoint holds
    if checkpoint_path is not None:
        path = str(resolve_checkpoint(checkpoint_path))
        return engine.checkpoint_state(path, lambda: _read(engine, path))
    live = engine.live
    if live.state is not None and engine.training and not engine.by_itself:
        return live.state if mode == ModeKeys.EVAL else live.snapshot()
    newest = latest_checkpoint(model_dir)
    if engine.by_itself and newest is not None:  # the live state is spread over processes that are not asked
        return engine.checkpoint_state(newest, lambda: _read_newest(engine, model_dir))
    if live.state is not None and (
        engine.training or newest is None or checkpoint_step(newest) == live.checkpoint_step
    ):
        return live.state if mode == ModeKeys.EVAL else live.snapshot()
    if newest is not None:
        return engine.checkpoint_state(newest, lambda: _read_newest(engine, model_dir))
    read_latest(model_dir, ())  # raises where there are checkpoints, all of them damaged
    if not (engine.config.allow_untrained or warm_start):
        raise CheckpointNotFoundError(
            f"Could not find trained model in model_dir: {model_dir}. Train first, give checkpoint_path or "
            "warm_start_from, or set RunConfig(allow_untrained=True) to use initial values."
        )
    if batch is None:
        raise CheckpointNotFoundError(f"The model in {model_dir} has no state yet: train, evaluate or predict first.")
    engine.start_fresh(engine.discovery(mode, batch, fresh=True), overrides)
    return engine.live.ready if mode == ModeKeys.EVAL else engine.live.snapshot()


def _read(engine: Engine, path: str) -> CheckpointItems:
    _check(engine, path)
    return read_checkpoint(path, _ITEMS)


def _read_newest(engine: Engine, model_dir: str) -> CheckpointItems:
    found = read_latest(model_dir, _ITEMS)
    if found is None:
        raise CheckpointNotFoundError(f"The checkpoint in {model_dir} was deleted while it was being read. Try again.")
    _check(engine, found.path)
    return found.items


def _check(engine: Engine, path: str) -> None:
    """Says how the plugins in use differ from those the checkpoint was made with; refuses other shapes and dtypes than
    those of the variables this Estimator knows. Further variables may differ.

    Raises:
        CheckpointMismatchError: says in what.
    """
    known, manifest = engine.specs, read_manifest(Path(path))
    for line in compare_versions(manifest.extras.get("plugins", ()), engine.plugin_versions()):
        _log.warning("%s", line)
    check_fits(
        Path(path),
        manifest,
        {
            "variables": {name: spec for name, spec in known.items() if spec.trainable},
            "model_state": {name: spec for name, spec in known.items() if not spec.trainable},
        },
        allow_cast=engine.config.allow_cast,
        allow_missing=True,
        allow_extra=True,
    )
