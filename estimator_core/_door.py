"""The one door by which evaluations of a training run reach what their Estimator keeps to itself."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

from estimator_core._loop.context import RunContext
from estimator_core._summaries import NO_SUMMARIES
from estimator_core.estimator import Estimator
from estimator_core.modes import ModeKeys
from estimator_core.specs import EvalSpec, check_hooks

# pyright: reportPrivateUsage=false


def evaluate_within(context: RunContext, spec: EvalSpec, checkpoint_path: str | None = None) -> dict[str, Any]:
    """Evaluates as an EvalSpec says, inside a call: in the place of what a killed run may have recorded.

    Args:
        context: of the call around the evaluation; its `checkpoint` and its `decisions` are the evaluation's.
        spec: what to evaluate.
        checkpoint_path: a checkpoint to evaluate instead of the newest state.
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
    return estimator._evaluate(inside, spec.input_fn, spec.steps, check_hooks(spec.hooks, "hooks"), checkpoint_path)


def entered(context: RunContext) -> contextlib.AbstractContextManager[None]:
    """Within, calls of the Estimator are made inside the call of a context."""
    return _estimator(context)._entered(context)


def _estimator(context: RunContext) -> Estimator:
    """The Estimator of a call, which the call itself knows only as far as it needs it."""
    assert isinstance(context.estimator, Estimator), "only an Estimator makes contexts"
    return context.estimator


@contextlib.contextmanager
def outermost(estimator: Estimator) -> Generator[RunContext]:
    """A context for evaluations and exports that belong to no training call; its event files are closed at the end."""
    context = estimator._context(ModeKeys.EVAL)
    with contextlib.closing(context.results):
        yield context
