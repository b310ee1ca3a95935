"""The training step of an estimator without a training call: its first state, and its program for any batch size."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Generator, Sequence
from typing import Any

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_runs.population.member import Member, Standing, check_member, start


@contextlib.contextmanager
def started(
    estimator: ec.Estimator, input_fn: Callable[..., Any], hooks: Sequence[Any] = ()
) -> Generator[tuple[Member, Standing]]:
    """Yields a run of an estimator at its first step, in a directory that is removed at the end.

    Raises:
        ArgumentError: the step cannot be made outside a training call. The message says why.
    """
    with tempfile.TemporaryDirectory(prefix="estimator-budget-") as folder:
        config = estimator.config.replace(
            model_dir=folder,
            save_checkpoints_secs=None,
            save_checkpoints_steps=10**9,
            steps_per_dispatch=1,
            default_hooks=False,
            components={name: said for name, said in estimator.config.components.items() if name != "nan_tensor"},
        )
        copy = ec.with_model_fn(estimator, estimator.model_fn, config)
        member = Member(name="the training", estimator=copy, input_fn=input_fn, hooks=hooks)
        try:
            check_member(member)
        except ArgumentError as error:
            raise ArgumentError(f"{error} Leave it out for this.") from None
        yield member, start(member)
