"""One `Estimator.train` call, from its first check to its last file."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core._builtin_hooks.checkpoint_saver import CheckpointSaverHook
from estimator_core._builtin_hooks.evaluation import EvaluationHook, RunEvaluations
from estimator_core._builtin_hooks.history_recorder import HistoryRecorderHook
from estimator_core._builtin_hooks.logging_tensor import LoggingTensorHook
from estimator_core._builtin_hooks.nan_tensor import NanTensorHook
from estimator_core._builtin_hooks.step_counter import StepCounterHook
from estimator_core._builtin_hooks.summary_saver import SummarySaverHook
from estimator_core._checkpoint import CheckpointItems, CheckpointStore
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._checkpoint.write_errors import placed
from estimator_core._inputs import open_input
from estimator_core._loop import debug
from estimator_core._loop.agreement import INTERRUPTED, NOBODY_ASKS, NobodyAsks, OwnDecisions, SharedDecisions
from estimator_core._loop.batches import Batches
from estimator_core._loop.engine import Engine, Overrides
from estimator_core._loop.feed import feed
from estimator_core._loop.history import History
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.hook_order import in_order
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.in_flight import InFlightLimiter
from estimator_core._loop.outputs import check_fetches
from estimator_core._loop.owning import own_together
from estimator_core._loop.positions import positions_json
from estimator_core._loop.run import LoopRun
from estimator_core._loop.run_record import note_end, write_run_record
from estimator_core._loop.shared_feed import AHEAD, SharedFeed
from estimator_core._loop.start import Start, begin_from, find_start
from estimator_core._loop.time_spent import CHECKPOINT, INPUT, in_words
from estimator_core._loop.train import train_loop
from estimator_core._loop.tuning import TrainWays, steps_per_dispatch
from estimator_core._plugins import compare_versions
from estimator_core._step import Discovery
from estimator_core._step.state import flatten_opt_state
from estimator_core._step.train_step import GRADIENT_NORM
from estimator_core._summaries import NO_SUMMARIES, open_summary_writer, read_eval_metrics
from estimator_core.errors import PreemptedError, ProcessLostError
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class TrainCall:
    """The arguments of a training call, checked, and what the Estimator lends it.

    Attributes:
        estimator: handed to hooks as `run.estimator`.
        engine: programs and state.
        model_dir: exists when `execute` is called.
        last_step: the global step to stop at; None: when the input ends.
        evaluations: of train_and_evaluate.
        overrides: initial values from warm start, requests of model_fn and scaffold.
        plugins: the plugin registry.
    """

    estimator: Any
    engine: Engine
    model_dir: Path
    input_fn: Callable[..., Any]
    hooks: Sequence[Any]
    listeners: Sequence[Any]
    steps: int | None
    max_steps: int | None
    evaluations: RunEvaluations | None
    overrides: Overrides
    history: History
    plugins: Any

    def execute(self) -> str:
        """Trains; returns why it ended.

        Raises:
            PreemptedError: when the platform asked for a stop; the state is saved.
        """
        config, peers = self.engine.config, self.engine.peers
        with (
            placed(self.model_dir),
            peers.guard(),
            own_together(self.model_dir, peers),
            Preemption(grace_secs=config.grace_secs) as preemption,
            contextlib.ExitStack() as cleanup,
        ):
            best = config.keep_checkpoint_best
            store = cleanup.enter_context(
                CheckpointStore(
                    self.model_dir,
                    keep_max=config.keep_checkpoint_max,
                    keep_every_n_hours=config.keep_checkpoint_every_n_hours,
                    keep_best=best,
                    results=lambda: read_eval_metrics(self.estimator.eval_dir(best and best.evaluation)),
                    peers=peers,
                )
            )
            _log.info("%s", self.plugins.opening_line())
            # The first process to ask for devices waits until all do; below one of them may have to wait for another.
            _ = self.engine.placement
            start = find_start(self.engine, str(self.model_dir))
            if start.items is not None:
                for line in compare_versions(start.items.manifest.get("plugins", ()), self.plugins.versions()):
                    _log.warning("%s", line)
            return _Execution(self, start, store, preemption, cleanup).run_to_end()


class _Execution:
    """The moving parts of one call."""

    def __init__(
        self,
        call: TrainCall,
        start: Start,
        store: CheckpointStore,
        preemption: Preemption,
        cleanup: contextlib.ExitStack,
    ) -> None:
        self._call, self._start, self._store, self._preemption, self._cleanup = call, start, store, preemption, cleanup
        self._engine = engine = call.engine
        config = engine.config
        summaries = open_summary_writer(call.model_dir, resume_step=start.step) if config.is_chief else NO_SUMMARIES
        if config.is_chief:
            cleanup.callback(summaries.close)
        last_step = (
            call.max_steps if call.max_steps is not None else None if call.steps is None else start.step + call.steps
        )
        self._run = LoopRun(
            mode=ModeKeys.TRAIN,
            estimator=call.estimator,
            config=config,
            params=engine.model_fn.params,
            model_dir=call.model_dir,
            summaries=summaries,
            live=engine.live,
            last_step=last_step,
        )
        self._run.step = self._run.first_step = start.step
        self._run.resumed = start.unfinished
        self._plugin_hooks = call.plugins.run_hooks(self._run)
        self._saver, self._user_hooks = self._checkpoint_saver()
        self._calls = HookCalls(self._ordered((), ()), self._run)
        self._schedule: HookSchedule | None = None  # from the time on when the batches can be drawn
        self._k: int | None = None
        self._uncommitted: Any = None
        self._recorded = False  # whether run.json speaks of this call
        self._decisions: OwnDecisions | SharedDecisions | NobodyAsks = NOBODY_ASKS
        preemption.waiting_for = lambda: in_words(self._run.time_spent.entry)

    def run_to_end(self) -> str:
        """Begin, loop, end; `end` whatever happens."""
        call, run = self._call, self._run
        error: BaseException | None = None
        call.plugins.run_start(run)
        self._engine.training, self._engine.time_spent = True, run.time_spent
        self._cleanup.enter_context(run.time_spent.compilations())
        try:
            reason = self._train()
            run.interrupted = reason == INTERRUPTED
            if not run.interrupted:
                run.stopped(reason)
        except BaseException as raised:
            error, run.failed = raised, True
            raise
        finally:
            try:
                (self._calls if self._schedule is None else self._schedule).end(error)
                self._keep()
            finally:
                self._engine.training, self._engine.time_spent = False, None
                self._engine.newest_results.clear()
                self._engine.close_event_files()
                if error is not None and self._recorded and not isinstance(error, ProcessLostError):
                    with contextlib.suppress(OSError):  # what it would say is raised anyway
                        note_end(call.model_dir, run.step, f"{type(error).__name__}: {error}", failed=True)
                if error is not None:
                    self._engine.forget()
                call.plugins.run_end(run, error)
        call.history.stop_reason = reason
        if run.interrupted or (self._saver is not None and self._saver.owed_step == run.step):
            saved = (
                f"saved at step {run.step}; start it again to go on"
                if self._saver is not None
                else "not saved, because checkpoints are switched off"
            )
            raise PreemptedError(
                f"Training was interrupted ({self._preemption.reason}) and its state {saved}.", step=run.step
            )
        if self._recorded:
            note_end(call.model_dir, run.step, reason)
        return reason

    def _train(self) -> str:
        call, engine, run, start = self._call, self._engine, self._run, self._start
        source = open_input(
            run.transformed(call.input_fn),
            mode=ModeKeys.TRAIN,
            params=engine.model_fn.params,
            config=engine.config,
            input_context=engine.input_context,
            position=start.position,
        )
        self._calls.begin()
        fed = feed(source, engine.placement, engine.config.prefetch, engine.peers)
        self._cleanup.callback(fed.close)
        # What several processes decide travels with their batches.
        alone = not isinstance(fed, SharedFeed)
        batches = Batches(fed, engine.placement.stack, run.time_spent, alone=alone)
        self._decisions = decisions = (
            OwnDecisions(self._preemption) if alone else SharedDecisions(self._preemption, engine.peers, lag=AHEAD)
        )
        self._schedule = schedule = HookSchedule(
            self._calls,
            run,
            batches=batches,
            account=run.time_spent,
            agreement=decisions,
            encode_if_due=run.summaries.encode_if_due,
        )
        decisions.watch(fed, schedule)
        run.asked_to_stop = lambda: decisions.requested
        with run.time_spent.on(INPUT):
            first = batches.first()
        if source.restored is not None:
            _log.info("%s", source.restored)
        if first is None:
            _log.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
            return "the input is empty"
        fresh = start.items is None and engine.live.state is None
        discovery = engine.discovery(ModeKeys.TRAIN, first, fresh=fresh)
        with engine.placement.context():
            begin_from(engine, start, discovery, call.overrides, allow_cast=engine.config.allow_cast)
            run.live = engine.live
            self._create_hooks(discovery, first, schedule)
            packing = engine.packing(discovery)
            engine.live.carry(packing)
            step = engine.train_step(self._fetches(discovery), packing)
            run.texts = step.texts
            run.count_flops = lambda: _flops(step, engine.live.carried, first)
            program = (
                debug.program(step)
                if engine.config.debug
                else lambda count: step.step if count == 1 else step.scan(count)
            )
            remembered = (
                None if start.items is None or not start.unfinished else start.items.timers.get("steps_per_dispatch")
            )
            self._k = steps_per_dispatch(
                engine.config.steps_per_dispatch,
                remembered,
                batches,
                TrainWays(program=program, state=engine.live.carried),
                engine.peers,
                engine.measured_dispatches.setdefault(step, {}),
            )
            batches.group(self._k)
            programs = {count: program(count) for count in {1, self._k}}
            with run.summaries.collecting():
                reason = train_loop(run, engine.live, batches, programs, schedule, InFlightLimiter(), decisions)
            if self._saver is None and reason != INTERRUPTED:
                self._before_last_save()
            return reason

    def _before_last_save(self) -> bool:
        """Hooks may replace variables; returns whether one did."""
        before = self._engine.live.state
        assert self._schedule is not None, "the first batch has been seen"
        self._schedule.before_last_save()
        return self._engine.live.state is not before

    def _create_hooks(self, discovery: Discovery, first: Any, schedule: HookSchedule) -> None:
        """Hooks of the spec begin; all are restored and created."""
        call, run, calls = self._call, self._run, self._calls
        calls.arrange(self._ordered(discovery.training_chief_hooks, discovery.training_hooks))
        calls.begin()
        predictions = (
            discovery.predictions
            if isinstance(discovery.predictions, Mapping)
            else {"predictions": discovery.predictions}
        )
        run.output_kinds = {
            **{name: "tensor" for name, value in predictions.items() if value is not None},
            **discovery.outputs,
        }
        run.output_names = frozenset([*run.output_kinds, GRADIENT_NORM, "first_bad_step"])
        run.batch, run.batch_size = first, first.size
        evaluations = call.evaluations
        if self._saver is not None:
            self._saver.bind(
                self._save,
                existing=None if self._start.checkpoint is None else self._start.step,
                evaluate=None if evaluations is None else self._evaluating(evaluations.evaluate, saving=True),
                evaluate_between=(
                    None if evaluations is None else self._evaluating(evaluations.evaluate_between, saving=False)
                ),
                before_last_save=self._before_last_save,
            )
        calls.restore(self._start.hook_states)
        if self._engine.peers.is_chief:
            write_run_record(
                call.model_dir,
                config=run.config,
                params=run.params,
                call={"first_step": run.first_step, "last_step": run.last_step},
                plugins=call.plugins.versions(),
            )
            self._recorded = True
        schedule.start(run.live)
        if self._saver is not None:
            self._saver.make_up(run)

    def _fetches(self, discovery: Discovery) -> frozenset[str]:
        """The declared outputs that cost something: all others are returned anyway."""
        wanted = self._run.seal_fetches()
        check_fetches(wanted, self._run.output_names)
        return frozenset(
            name for name in wanted if name == GRADIENT_NORM or self._run.output_kinds.get(name) == "tensor"
        )

    def _checkpoint_saver(self) -> tuple[CheckpointSaverHook | None, list[Any]]:
        """The saver of the call: the user's first one, else one as configured; and the other user hooks."""
        config, hooks = self._engine.config, list(self._call.hooks)
        saver = next((hook for hook in hooks if isinstance(hook, CheckpointSaverHook)), None)
        if saver is None and (config.save_checkpoints_steps or config.save_checkpoints_secs):
            saver = CheckpointSaverHook(
                save_steps=config.save_checkpoints_steps, save_secs=config.save_checkpoints_secs
            )
        if saver is not None:
            saver.add_listeners(self._call.listeners)
        return saver, [hook for hook in hooks if not isinstance(hook, CheckpointSaverHook)]

    def _ordered(self, chief_hooks: Sequence[Any], spec_hooks: Sequence[Any]) -> list[Any]:
        """All hooks in the order of tf.estimator."""
        if not self._engine.peers.is_chief:
            chief_hooks = [Hook() for _ in chief_hooks]  # every process has the same places
        if not hasattr(self, "_core_hooks"):
            config = self._engine.config
            every = config.log_step_count_steps
            self._counter: list[Any] = [StepCounterHook(every_n_steps=every)] if every else []
            self._summary: list[Any] = (
                [SummarySaverHook(save_steps=config.save_summary_steps)] if config.save_summary_steps else []
            )
            self._log: list[Any] = (
                [
                    LoggingTensorHook({"loss": "loss", "step": "step"}, every_n_iter=every),
                    HistoryRecorderHook(self._call.history, every),
                ]
                if every
                else []
            )
            self._core_hooks = True
        saver = [] if self._saver is None else [self._saver, *self._between(self._saver)]
        return [
            *saver,
            *chief_hooks,
            *self._counter,
            *self._summary,
            *in_order([*self._plugin_hooks, *self._user_hooks]),
            self._nan(),
            *self._log,
            *spec_hooks,
            *([] if self._saver is None else [self._saver.last]),
        ]

    def _between(self, saver: CheckpointSaverHook) -> list[EvaluationHook]:
        """The hook that evaluates between checkpoints, where somebody wants that."""
        evaluations = self._call.evaluations
        if evaluations is None or evaluations.next_step(0) is None:
            return []
        if not hasattr(self, "_evaluation_hook"):
            self._evaluation_hook = EvaluationHook(evaluations.next_step, saver.run_between)
        return [self._evaluation_hook]

    def _nan(self) -> Any:
        if not hasattr(self, "_nan_hook"):
            self._nan_hook = NanTensorHook()
        return self._nan_hook

    def _evaluating(self, evaluate: Callable[[Any], None], *, saving: bool) -> Callable[[Any], None]:
        """An evaluation that belongs to this run; `saving`: and to the save that follows."""

        def run_it(run: Any) -> None:
            self._engine.saving_step, self._engine.decisions = run.step if saving else None, self._decisions
            try:
                evaluate(run)
            finally:
                self._engine.saving_step, self._engine.decisions = None, NOBODY_ASKS

        return run_it

    def _save(self, step: int) -> Any:
        """Hands a checkpoint to the store: the state after `step`, the input's position, the states of all hooks."""
        engine, run = self._engine, self._run
        live = engine.live
        state = live.ready
        position = live.position if run.step > run.first_step else self._start.position
        items = CheckpointItems(
            clock=state.clock,
            variables=state.variables,
            model_state=state.model_state,
            opt_state=flatten_opt_state(state.opt_state),
            input=positions_json(position, engine.peers, engine.placement.pipelines),
            hooks=self._states(),
            timers={"steps_per_dispatch": self._k},
            manifest={"plugins": self._call.plugins.versions(), "components": self._call.plugins.used()},
        )
        with run.time_spent.on(CHECKPOINT):
            saved = self._store.save(step, items)
        live.checkpoint_step = step
        self._announce_commit()
        self._uncommitted = saved
        return saved

    def _keep(self) -> None:
        """What a further call in this process goes on from."""
        if not self._run.failed:
            self._engine.live.hook_states = self._states()
            with self._run.time_spent.on(CHECKPOINT):
                self._store.wait()
            self._announce_commit()

    def _states(self) -> dict[str, dict[str, Any]]:
        return (self._calls if self._schedule is None else self._schedule).states()

    def _announce_commit(self) -> None:
        """Tells plugins of the checkpoint before, which is committed by now: a save waits for the one before it."""
        if self._uncommitted is not None:
            saved, self._uncommitted = self._uncommitted, None
            self._call.plugins.checkpoint_saved(self._run, saved.step, saved.path)


def _flops(step: Any, state: Any, batch: Any) -> float | None:
    """What XLA's analysis of the step, before optimisation, says; the trace that compiled the step serves."""
    analysis = step.step.lower(state, batch.features, batch.labels, batch.weights).cost_analysis()
    return None if not analysis or "flops" not in analysis else float(analysis["flops"])
