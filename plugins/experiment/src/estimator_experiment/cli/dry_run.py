"""`estimator run --dry-run`: finds what would fail, shows what would be trained, and tests whether the model can
overfit one batch.
"""

from __future__ import annotations

import logging
import math
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_core.config import RunConfig
from estimator_core.errors import PreemptedError
from estimator_core.hooks import Hook
from estimator_experiment.cli.run_report import elapsed, table
from estimator_experiment.rehearsal import find_faults

_log = logging.getLogger("estimator_core")
_STEPS = 300
_ENOUGH = 0.1
#: The seconds between two lines about the loss.
_EVERY = 10.0


def dry_run(experiment_fn: Callable[..., Any], config: RunConfig, hparams: Any) -> int:
    """Tries inputs, modes and exports, prints variables, memory and hooks, then trains on one batch.

    It writes to a temporary directory.

    Returns:
        0 if there are no faults and the loss of the batch fell to a tenth, otherwise 1.
    """
    with tempfile.TemporaryDirectory(prefix="estimator-dry-run-") as directory:
        quiet = config.replace(
            model_dir=directory,
            save_checkpoints_steps=None,
            save_checkpoints_secs=None,
            save_summary_steps=None,
            log_step_count_steps=None,
            default_hooks=False,
        )
        experiment = experiment_fn(quiet, hparams)
        train_spec, eval_spec = experiment.specs()
        faults = find_faults(experiment.estimator, train_spec, [eval_spec], predicts=True)
        for at, fault in enumerate(faults, 1):
            print(f"{at}. {fault}")
        if faults:
            print(f"\n{len(faults)} fault{'s' if faults[1:] else ''}; nothing was trained.")
            return 1
        print("Inputs, modes and exports fit together.")
        return _try(experiment)


def _try(experiment: Any) -> int:
    estimator = experiment.estimator
    losses = _Losses()
    began = time.monotonic()

    def one_batch(mode: Any, params: Any, config: Any) -> Any:
        from estimator_core.inputs import open_input

        source = open_input(experiment.train_input_fn, mode=mode, params=params, config=config)
        batch = next(source, None)
        source.close()
        if batch is None:
            return iter(())
        element = batch.features if batch.labels is None else (batch.features, batch.labels)
        return (element for _ in range(_STEPS))

    try:
        estimator.train(one_batch, hooks=[*(hook for hook in experiment.train_hooks if _prepares_input(hook)), losses])
    except PreemptedError as error:
        raise PreemptedError(f"The dry run was interrupted at step {error.step}. It wrote nothing.") from None
    _describe(estimator, experiment, losses)
    first, best = losses.of_steps[0], min(losses.of_steps)
    overfits = best <= _ENOUGH * first if first > 0 else best < first
    verdict = "overfits" if overfits else "does NOT overfit"
    print(
        f"\nOne batch of {losses.batch_size}, {len(losses.of_steps)} steps in {elapsed(began)}: loss {first:.4g} -> "
        f"{losses.of_steps[-1]:.4g} (lowest {best:.4g}). The model {verdict} it."
    )
    if not overfits:
        print(
            "A model that cannot memorise one batch has a wrong loss, labels that do not belong to their features, or "
            "an unsuitable learning rate."
        )
    return 0 if overfits else 1


def _prepares_input(hook: Any) -> bool:
    """Returns whether a hook acts in `begin`, which may prepare inputs."""
    return type(hook).begin is not Hook.begin


def _describe(estimator: Any, experiment: Any, losses: _Losses) -> None:
    rows = [
        (name, str(value.dtype), str(list(value.shape)), f"{value.size:,}")
        for name, value in sorted(estimator.variables.items())
    ]
    print("\n" + table(rows, ("variable", "dtype", "shape", "values")))
    count = sum(value.size for value in estimator.variables.values())
    size = sum(value.nbytes for value in estimator.variables.values())
    print(f"\n{count:,} values, {_bytes(size)}; with the optimizer's state {_bytes(losses.state_bytes)}")
    print(f"outputs  {', '.join(losses.outputs)}")
    print(f"hooks    {', '.join(type(hook).__name__ for hook in experiment.train_hooks) or 'none from the experiment'}")
    print(f"traces   {estimator.trace_counts}")


class _Losses(Hook):
    """Keeps the loss of every step. Stops when the batch is learnt."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self.of_steps: list[float] = []
        self.outputs: list[str] = []
        self.batch_size = 0
        self.state_bytes = 0

    def after_create(self, run: Any) -> None:
        import jax

        self.outputs = [f"{name} ({kind})" for name, kind in sorted(run.output_kinds.items())]
        self.batch_size = run.batch_size
        self.state_bytes = sum(
            np.dtype(leaf.dtype).itemsize * math.prod(leaf.shape) for leaf in jax.tree_util.tree_leaves(run.live.state)
        )

    def next_step(self, step: int) -> int | None:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        loss = float(out["loss"])
        self.of_steps.append(loss)
        if self.of_steps[0] > 0 and loss <= _ENOUGH * self.of_steps[0]:
            run.request_stop("the batch is learnt")
        if time.monotonic() - self._told > _EVERY:
            self._told = time.monotonic()
            _log.info("One batch, step %d of at most %d: loss %.4g", step, _STEPS, loss)


def _bytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
