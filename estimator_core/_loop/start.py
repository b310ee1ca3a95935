"""Where a training call starts: from the state in memory, from a checkpoint, or fresh."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator_core._checkpoint import (
    checkpoint_step,
    latest_checkpoint,
    read_checkpoint,
    read_latest,
    read_manifest,
)
from estimator_core._checkpoint.layout import checkpoints_dir
from estimator_core._checkpoint.restore import check_fits
from estimator_core._inputs import InputPosition
from estimator_core._loop.engine import Engine, Overrides
from estimator_core._loop.positions import position_of
from estimator_core._loop.run_record import ended_step
from estimator_core._step import Discovery
from estimator_core._step.state import flatten_opt_state

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class Start:
    """The point a training call starts from.

    Attributes:
        step: the global step.
        checkpoint: its path; None for a start from memory without checkpoints, or a fresh one.
        items: what the checkpoint holds; None when the state is in memory already, or fresh.
        position: of the input.
        hook_states: by hook name; none where a new call begins.
        unfinished: whether this goes on with an interrupted call.
    """

    step: int = 0
    checkpoint: str | None = None
    items: Any = None
    position: InputPosition | None = None
    hook_states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    unfinished: bool = False


def start_step(engine: Engine, model_dir: str) -> int:
    """The global step a training call would start from."""
    newest = latest_checkpoint(model_dir)
    if newest is not None and checkpoint_step(newest) != engine.live.checkpoint_step:
        return checkpoint_step(newest)
    return engine.live.step if engine.live.state is not None else 0


def find_start(engine: Engine, model_dir: str) -> Start:
    """Decides where to start; a checkpoint that is newer than the state in memory wins."""
    live, peers = engine.live, engine.peers
    newest = latest_checkpoint(model_dir)
    if peers.count > 1:
        newest = _in(model_dir, peers.chief_says("newest", None if newest is None else checkpoint_step(newest)))
    if live.state is not None and (newest is None or checkpoint_step(newest) == live.checkpoint_step):
        return Start(step=live.step, checkpoint=newest, position=live.position)
    found = read_latest(model_dir, set_aside=True) if peers.is_chief else None
    path = None if found is None else found.path
    if peers.count > 1:
        path = _in(model_dir, peers.chief_says("start", None if found is None else found.step))
    if path is None:
        return Start()
    items = read_checkpoint(path) if found is None else found.items
    saver: Mapping[str, Any] = items.hooks.get("CheckpointSaverHook", {})
    # A call that ends by itself just where a checkpoint was due does not save that step again to say so.
    ended = saver.get("finished", False) or ended_step(Path(model_dir), well=True) == int(items.clock[0])
    unfinished = not ended or saver.get("owed_step") == int(items.clock[0])
    return Start(
        step=int(items.clock[0]),
        checkpoint=path,
        items=items,
        position=None if items.input is None else position_of(items.input, engine.input_context),
        hook_states=items.hooks if unfinished else {},
        unfinished=unfinished,
    )


def _in(model_dir: str, step: int | None) -> str | None:
    """A checkpoint of the chief's, as this process calls it."""
    return None if step is None else str(checkpoints_dir(model_dir) / str(step))


def begin_from(engine: Engine, start: Start, discovery: Discovery, overrides: Overrides, *, allow_cast: bool) -> None:
    """Brings the live state to the start, with everything training needs.

    Raises:
        CheckpointMismatchError: the checkpoint does not fit the model; says in what.
    """
    if start.items is not None:
        assert start.checkpoint is not None
        abstract = {
            "variables": discovery.trainable,
            "model_state": discovery.model_state,
            "opt_state": flatten_opt_state(discovery.opt_state),
        }
        check_fits(
            Path(start.checkpoint),
            read_manifest(Path(start.checkpoint)),
            abstract,
            allow_cast=allow_cast,
            allow_missing=False,
            allow_extra=False,
        )
        engine.start_from_checkpoint(start.items, start.step, with_slots=True, discovery=discovery)
    elif engine.live.state is None:
        engine.start_fresh(discovery, overrides)
    engine.complete(discovery)
