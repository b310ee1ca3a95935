"""The metrics of an evaluation, accumulated on the device."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable
from typing import Any

import jax

from estimator_core._backends.device_get import fetched
from estimator_core._inputs import Batch
from estimator_core._loop.dispatch import Dispatch, check_fetches
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.run import LoopRun
from estimator_core._metrics.merging import compute_metrics, merge_metrics
from estimator_core._step.eval_step import Accumulated, EvalStep, Evaluated
from estimator_core.coordinator import Coordinator

_log = logging.getLogger("estimator_core")
#: An evaluation with fewer batches logs each one. Others log about this many lines.
_FEW_STEPS, _LINES = 20, 10
#: The outputs that every step returns, even without a request.
_RETURNED = {"loss"}


class EvalTotal:
    """Adds batches to the metrics, one by one or together, see `Ways`.

    Args:
        run: the run whose live state is evaluated. Its `last_step` is the number of batches, if known.
        step: the evaluation program.
        grouped: whether an earlier call has shown that its metrics are computed on the device, in groups.

    Attributes:
        room: the number of batches that may be added at once: one if metrics are computed on the host.
    """

    def __init__(self, run: LoopRun, step: EvalStep, *, grouped: bool = False) -> None:
        self._run, self._step = run, step
        self._accumulated: Accumulated | None = None
        self._evaluated: Evaluated | None = None
        self._host_metrics: dict[str, Any] = {}
        self.room = math.inf if grouped else 1.0  # otherwise the first batch shows whether there are host metrics

    def add(self, dispatch: Dispatch) -> dict[str, Any] | None:
        """Adds the batches of a dispatch. Returns the outputs of a single batch, or None for several."""
        features, labels, weights, steps, _ = dispatch
        state, outputs = self._state, None
        if steps > 1:
            self._accumulated = self._step.several(self._accumulated, state, features, labels, weights)
        else:
            result = self._step(self._accumulated, state, features, labels, weights)
            self._accumulated, outputs = result.accumulated, result.outputs
            host, new = self._host_metrics, result.host_metrics
            self._host_metrics = merge_metrics(host, new) if host else new
            self.room = 1 if self._host_metrics else math.inf
        self._log_progress(self._run.step, self._run.step + steps)
        return outputs

    def batches_until_log(self) -> float:
        """Returns the number of batches that may be added before the next log line."""
        if self.room < math.inf or self._accumulated is None:
            return 0
        steps, done = self._run.last_step, self._run.step
        if steps is None:
            return math.inf
        return 0 if steps < _FEW_STEPS else steps // _LINES - done % (steps // _LINES)

    def adder(self) -> Callable[[Batch], None]:
        """Returns a function that adds one batch whose outputs are not needed. It is used while no hook has control."""
        step, state = self._step, self._state

        def add(batch: Batch) -> None:
            self._accumulated = step(self._accumulated, state, batch.features, batch.labels, batch.weights).accumulated

        return add

    def log_progress(self, before: int) -> None:
        """Logs the progress if it has reached a log line since `before` batches."""
        self._log_progress(before, self._run.step)

    def compute(self) -> dict[str, Any]:
        """Returns the metrics of all added batches."""
        accumulated, host = fetched((self._accumulated, self._host_metrics))
        return compute_metrics({**self._step.totals(accumulated), **host})

    def one_by_one(self, batches: list[Batch]) -> Any:
        """Returns the total with further batches, added one after another."""
        accumulated, state = self._accumulated, self._state
        for batch in batches:
            accumulated = self._step(accumulated, state, batch.features, batch.labels, batch.weights).accumulated
        return accumulated

    def together(self, dispatch: Dispatch) -> Any:
        """Returns the total with the batches of a dispatch."""
        features, labels, weights, _, _ = dispatch
        return self._step.several(self._accumulated, self._state, features, labels, weights)

    def has_effects(self, dispatch: Dispatch) -> bool:
        """Returns whether evaluating calls back to the host."""
        return self._step.has_effects(self._run.live.ready, dispatch.features, dispatch.labels, dispatch.weights)

    @property
    def _state(self) -> Evaluated:
        """The live state, which hooks may replace."""
        live = self._run.live.ready
        if self._evaluated is None or self._evaluated.state is not live:
            self._evaluated = Evaluated.of(live)
        return self._evaluated

    def _log_progress(self, before: int, done: int) -> None:
        steps, name = self._run.last_step, self._run.name
        if steps is not None and (steps < _FEW_STEPS or done // (steps // _LINES) > before // (steps // _LINES)):
            _log.info("Evaluation [%d/%d]%s", done, steps, "" if name is None else f" ({name})")


def prepared(
    run: LoopRun,
    calls: HookCalls,
    eval_steps: Callable[[frozenset[str], Hashable], EvalStep],
    batch: Batch,
    processes: Coordinator,
    start: Callable[[], None],
) -> EvalStep:
    """Returns the program for the outputs that hooks fetch. All hooks have started, also those of the EstimatorSpec.

    Args:
        run: the run that hooks see. It receives the names of the outputs.
        calls: the hooks. Those of the EstimatorSpec are added.
        eval_steps: a function that returns the program for a set of fetched outputs and a form of batches.
        batch: the first batch.
        processes: those that evaluate together.
        start: calls `after_create` of the hooks, which know the names of the outputs and may still fetch them.
    """
    data = (run.live.ready, batch.features, batch.labels, batch.weights)
    leaves, structure = jax.tree.flatten(data[1:])
    form = structure, tuple(leaf.dtype for leaf in leaves)
    eval_step = eval_steps(frozenset(run.fetches.union(run.followed)) - _RETURNED, form)
    eval_step.prepare(*data)
    calls.add(eval_step.hooks)
    calls.begin()
    run.output_kinds = eval_step.output_kinds
    run.output_names = frozenset(eval_step.output_kinds)
    run.batch_metrics = eval_step.metrics
    start()
    wanted = run.seal_fetches(processes)
    check_fetches(wanted, run.output_names)
    if wanted - _RETURNED != eval_step.fetches:
        eval_step = eval_steps(wanted - _RETURNED, form)
        eval_step.prepare(*data)
    return eval_step
