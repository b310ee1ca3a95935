"""The first batch of a training input, for callers that need its shapes and do not train."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from estimator_core._inputs import BatchSource, open_input
from estimator_core._inputs.contract import Batch
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.owner import Owner
from estimator_core._loop.run import LoopRun
from estimator_core._summaries import NO_SUMMARIES
from estimator_core.modes import ModeKeys


def opened(estimator: Owner, input_fn: Callable[..., Any], hooks: Sequence[Any], mode: str) -> BatchSource:
    """An input as a call of this mode opens it, at its beginning.

    Args:
        estimator: has the params and the config.
        input_fn: the input, with the transforms of the estimator.
        hooks: only `begin` of each is called, which prepares inputs and changes batches.
        mode: one of `ModeKeys`.
    """
    run = LoopRun(
        mode=mode,
        estimator=estimator,
        config=estimator.config,
        params=estimator.params,
        model_dir=Path(estimator.model_dir),
        summaries=NO_SUMMARIES,
        live=DeviceState(),
    )
    source = open_input(run.transformed(input_fn), mode=mode, params=estimator.params, config=estimator.config)
    with contextlib.ExitStack() as failed:
        failed.callback(source.close)
        for hook in hooks:
            hook.begin(run)
        failed.pop_all()
    return source


def first_batch(estimator: Owner, input_fn: Callable[..., Any], hooks: Sequence[Any]) -> Batch | None:
    """The first batch that `estimator.train(input_fn, hooks)` would draw; None: the input is empty."""
    with contextlib.closing(opened(estimator, input_fn, hooks, ModeKeys.TRAIN)) as source:
        return next(source, None)
