"""The run of one training call, from begin to end."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._builtin_hooks.checkpoint_saver import CheckpointSaverHook
from estimator_core._checkpoint import CheckpointStore
from estimator_core._checkpoint.catalog import manifest_digest
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._cluster.processes import gather
from estimator_core._inputs import Batch, BatchSource
from estimator_core._journal.entries import Entry
from estimator_core._loop.agreement import INTERRUPTED, decisions_of
from estimator_core._loop.batches import Batches, feed
from estimator_core._loop.checkpointing import Checkpointer, RunEvaluations, checkpoint_policy
from estimator_core._loop.checkpoints import Checkpoints
from estimator_core._loop.device_state import INPUT_ENDED
from estimator_core._loop.dispatch import InFlightLimiter, Program, check_fetches
from estimator_core._loop.hook_calls import HookCalls, HookOrder, default_hooks, each_once, in_order
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.initial_state import completed
from estimator_core._loop.result_log import ObserverLedger, ResultLog, WriterLedger
from estimator_core._loop.resuming import Start, input_context, restored_state
from estimator_core._loop.run import LoopRun
from estimator_core._loop.run_record import changed_hparams, note_end, write_run_record
from estimator_core._loop.steps_per_dispatch import TrainWays, steps_per_dispatch
from estimator_core._loop.time_spent import INPUT, TimeSpent, in_words
from estimator_core._loop.train import train_loop
from estimator_core._step import Discovery, TrainStep
from estimator_core._step.train_step import GRADIENT_NORM
from estimator_core._storage.contract import StorageError
from estimator_core._summaries import NO_SUMMARIES, open_summary_writer
from estimator_core.errors import (
    EstimatorError,
    NanLossDuringTrainingError,
    PreemptedError,
    ProcessLostError,
    SupersededError,
)
from estimator_core.hooks import CheckpointPolicy, Hook
from estimator_core.modes import ModeKeys

if TYPE_CHECKING:
    from estimator_core._loop.train_arguments import TrainArguments

_log = logging.getLogger("estimator_core")
_EMPTY = "the input is empty"
#: Kinds of outputs that a step returns only if a hook fetches them, or if summaries of their kind are written.
_FETCHED = ("tensor", "histogram", "image")


class TrainRun:
    """The parts of one training call while it runs.

    Args:
        call: the arguments of the call.
        start: the point from which the call starts.
        store: the store of the checkpoints.
        ledger: the ledger, which records the events of the run.
        preemption: the object that records a stop request of the platform.
        cleanup: the stack that closes the resources of the call.
    """

    def __init__(
        self,
        call: TrainArguments,
        start: Start,
        store: CheckpointStore,
        ledger: WriterLedger | ObserverLedger,
        preemption: Preemption,
        cleanup: contextlib.ExitStack,
    ) -> None:
        self._call, self._start, self._preemption, self._cleanup = call, start, preemption, cleanup
        config, plugins = call.context.config, call.context.plugins
        self._ledger = ledger
        summaries = NO_SUMMARIES
        if config.is_chief:
            summaries = open_summary_writer(call.context.directory, resume_step=start.step, epoch=lambda: ledger.epoch)
        cleanup.callback(summaries.close)
        self._decisions = decisions_of(call.context.devices, preemption, plugins)
        self._context = context = replace(
            call.context,
            summaries=summaries,
            account=TimeSpent(),
            decisions=self._decisions,
            results=ResultLog(ledger),
        )
        asked = None if call.steps is None else start.step + call.steps
        last_step = asked if call.max_steps is None else call.max_steps
        self._run = run = LoopRun(context, call.state, last_step=last_step)
        run.time_spent = context.account
        run.step = run.first_step = start.step
        run.resumed = start.unfinished
        self._schedule: HookSchedule | None = None  # set once batches can be drawn
        self._k: int | None = None
        self._checkpoints = Checkpoints(
            context,
            run,
            call.state,
            self._hook_states,
            store,
            position=start.position,
            timers=lambda: {"steps_per_dispatch": self._k},
            recorded=self._recorded_with,
            committed=ledger.committed,
        )
        self._checkpointer = checkpointer = self._made_checkpointer()
        # A policy among the hooks of the call has its place in `first` and `last`.
        no_policies = [hook for hook in call.hooks if not isinstance(hook, CheckpointPolicy)]
        early, late = default_hooks(config, plugins, call.history)
        self._order = HookOrder(
            first=() if checkpointer is None else checkpointer.first,
            given=(*early, *in_order([*plugins.run_hooks(run), *no_policies]), *late),
            last=() if checkpointer is None else checkpointer.last,
        )
        self._calls = HookCalls(self._order.with_spec(), run, context.busy)
        self._inputs = contextlib.ExitStack()  # an input that cannot be closed is a failure of the call
        self._recorded = False  # whether run.json describes this call
        preemption.waiting_for = lambda: in_words(run.time_spent.entry)

    def to_end(self) -> str:
        """Trains until the end. `end` is always called. Returns the reason why training ended.

        Raises:
            PreemptedError: the platform requested a stop.
        """
        call, run, context = self._call, self._run, self._context
        error: BaseException | None = None
        asked: str | None = None
        context.plugins.run_start(run)
        self._cleanup.enter_context(run.time_spent.compilations())
        try:
            with contextlib.closing(context.results), call.entered(context), self._inputs:
                try:
                    reason = self._train()
                    run.interrupted = reason == INTERRUPTED
                    if not run.interrupted:
                        run.stopped(reason)
                except BaseException as raised:
                    error, run.failed = raised, True
                    raise
                finally:
                    with contextlib.ExitStack() as ending:
                        ending.push(self._last_commit)
                        ending.callback(self._end_hooks, error)
                        self._checkpoints.finish()
                call.history.stop_reason = reason
                if call.evaluations is not None and reason != _EMPTY and not self._interrupted:
                    asked = self._finish(call.evaluations, reason)
        except BaseException as raised:  # also one of the last save, or of `end` of a hook
            error, run.failed = raised if error is None else error, True
            raise
        finally:
            self._note_failure(error)
            context.plugins.run_end(run, error)
        self._raise_if_interrupted()
        if asked:  # the end is not recorded, because a restart means this call and not another one
            call.state.forget()  # the next call starts from the checkpoint, as in another process
            raise PreemptedError(
                f"A stop was requested ({asked}) while the last evaluations and exports ran. "
                f"They are complete; training has ended at step {run.step}: {reason}. A restart runs no steps.",
                step=run.step,
            )
        if self._recorded:
            self._ledger.end(run.step, reason, failed=False)
            note_end(context.directory, run.step, reason)
        return reason

    def _recorded_with(self, step: int) -> Sequence[Entry]:
        """Returns the entries to record with the checkpoint of a step.

        The record of features is stored for its exports.
        """
        self._keep_seen()
        return self._ledger.for_save(step)

    def _keep_seen(self) -> None:
        if self._context.config.is_chief:
            for seen in self._call.seeing:
                seen.save(self._context.directory)

    def _finish(self, evaluations: RunEvaluations, reason: str) -> str | None:
        """Runs the last evaluations and exports. Returns the reason of a stop that the platform requested meanwhile."""
        self._tell_exporters(reason)
        try:
            evaluations.finish()
        except PreemptedError as broken_off:
            _log.info("%s This work is repeated when the run is started again.", broken_off)
            self._run.interrupted = True
            return None
        return next(filter(None, gather(self._context.devices.processes, "asked", self._preemption.reason)), None)

    def _tell_exporters(self, reason: str) -> None:
        """Writes the data that the last exports may read: the record of features, and the ending, which is still
        pending.
        """
        self._keep_seen()
        if self._recorded:
            self._ledger.check()
            note_end(self._context.directory, self._run.step, reason, owed=True)

    def _made_checkpointer(self) -> Checkpointer | None:
        """Returns the Checkpointer of the call; None if nothing is saved."""
        call, start = self._call, self._start
        policy = checkpoint_policy(self._context.config, self._context.plugins, call.hooks)
        if policy is None:
            return None
        return Checkpointer(
            self._run,
            policy,
            (*(policy.listeners if isinstance(policy, CheckpointSaverHook) else ()), *call.listeners),
            self._checkpoints,
            evaluations=call.evaluations,
            existing=None if start.checkpoint is None else start.step,
            ending=start.ending,
            before_last_save=self._before_last_save,
            stops_here=self._stops_here,
        )

    def _look_after(self) -> bool:
        """Writes due summaries and announces committed checkpoints. Returns whether nothing is waiting."""
        told = self._checkpoints.tell_commits()
        return self._run.summaries.encode_if_due() and told

    def _train(self) -> str:
        call, run, start, devices = self._call, self._run, self._start, self._context.devices
        source = run.open(call.input_fn, input_context(devices), start.position)
        self._calls.begin()
        batches, schedule = self._begin_drawing(source)
        with run.time_spent.on(INPUT):
            first: Batch | None = batches.first()
        if source.restored is not None:
            _log.info("%s", source.restored)
        if first is None:
            _log.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
            return _EMPTY
        if start.ending is not None:
            _log.info("The previous call was killed after its last save. This call runs no steps and only ends it.")
            run.stopped(start.ending.reason)
        elif start.cut_short and source.ended and call.steps is None:
            run.stopped(INPUT_ENDED)  # exactly where the previous call was killed
        fresh = start.items is None and call.state.state is None
        discovery = call.programs.discovery(devices, ModeKeys.TRAIN, first, fresh=fresh)
        with devices.placement.context():
            self._begin_state(discovery)
            self._create_hooks(discovery, first, schedule)
            programs = self._programs(discovery, batches, first)
            with run.summaries.collecting():
                reason = train_loop(run, call.state, batches, programs, schedule, InFlightLimiter(), self._decisions)
            if self._checkpointer is None and reason != INTERRUPTED:
                self._before_last_save()
            return reason

    def _begin_drawing(self, source: BatchSource) -> tuple[Batches, HookSchedule]:
        """Returns the batches of the input, and the schedule, which knows when hooks need them one by one."""
        run, devices = self._run, self._context.devices
        fed = feed(source, devices, self._context.config.prefetch, self._context.plugins)
        self._inputs.callback(fed.close)
        # The decisions of several processes are sent with their batches.
        batches = Batches(fed, devices.placement.stack, run.time_spent, alone=not devices.placement.spans_processes)
        self._schedule = schedule = HookSchedule(
            self._calls,
            run,
            batches=batches,
            account=run.time_spent,
            agreement=self._decisions,
            look_after=self._look_after,
        )
        self._decisions.watch(fed, schedule.overdue, run)
        return batches, schedule

    def _programs(self, discovery: Discovery, batches: Batches, first: Batch) -> dict[int, Program]:
        """Returns the compiled programs by their number of steps, and groups the batches for them."""
        call, run, start, live = self._call, self._run, self._start, self._call.state
        config, devices = self._context.config, self._context.devices
        packing = call.programs.packing(devices, live.ready, discovery)
        live.carry(packing)
        step = call.programs.train_step(devices, self._fetches(discovery), packing)
        run.texts = step.texts
        run.count_flops = lambda: _flops(step, live.carried, first)
        # A call that runs no steps does not need a program.
        if runs := run.stop_reason is None and run.step != run.last_step:
            self._decisions.compare(lambda: _lowered(step, live.carried, first).as_text())
        program = _in_debug_mode(step) if config.debug else _compiled(step, first)
        remembered = start.items.timers.get("steps_per_dispatch") if start.items and start.unfinished else None
        self._k = steps_per_dispatch(
            config.steps_per_dispatch,
            remembered,
            batches,
            TrainWays(program=program, state=live.carried),
            devices.processes,
            call.programs.measured_dispatches.setdefault(step, {}),
        )
        batches.group(self._k)
        programs = {count: program(count) for count in {1, self._k}}
        if self._k == 1 and not config.debug and runs:
            programs[1] = step.direct(live.carried, first.features, first.labels, first.weights)
        return programs

    def _begin_state(self, discovery: Discovery) -> None:
        """Brings the live state to the start, with all parts that training needs."""
        call, start, live = self._call, self._start, self._call.state
        devices, programs = self._context.devices, call.programs
        if start.items is not None:
            assert start.checkpoint is not None
            state = restored_state(devices, programs, discovery, start.items, start.checkpoint)
            live.start(state, start.step, checkpoint_step=start.step, has_slots=True)
            live.position, live.checkpoint_digest = start.position, manifest_digest(Path(start.checkpoint))
        elif live.state is None:
            live.start(call.fresh(devices, discovery))
        state = completed(devices, programs, discovery, live.ready, has_slots=live.has_slots)
        if state is not live.ready:
            live.carry(None)
            live.state, live.has_slots = state, True

    def _create_hooks(self, discovery: Discovery, first: Batch, schedule: HookSchedule) -> None:
        """Begins the hooks of the spec, and then restores and creates all hooks."""
        call, run, calls, context = self._call, self._run, self._calls, self._context
        is_chief = context.devices.processes.index == 0
        shared = {id(hook) for hook in self._order.with_spec((), discovery.training_hooks)}
        chief_hooks = each_once(hook for hook in discovery.training_chief_hooks if id(hook) not in shared)
        if not is_chief:
            chief_hooks = [Hook() for _ in chief_hooks]  # every process has the same places
        calls.arrange(self._order.with_spec(chief_hooks, discovery.training_hooks))
        calls.begin()
        given = discovery.predictions
        predictions: Mapping[str, Any] = given if isinstance(given, Mapping) else {"predictions": given}
        run.output_kinds = {
            **{name: "tensor" for name, value in predictions.items() if value is not None},
            **discovery.outputs,
        }
        run.output_names = frozenset([*run.output_kinds, GRADIENT_NORM, "first_bad_step"])
        run.batch, run.batch_size = first, first.size
        calls.restore(self._start.hook_states)
        if is_chief:
            self._ledger.check()  # from here on, the run writes
            if run.first_step and (changed := changed_hparams(context.directory, run.params)):
                _log.info("Training continues from step %d with other hyperparameters: %s.", run.first_step, changed)
            write_run_record(
                context.directory,
                config=run.config,
                params=run.params,
                call={"first_step": run.first_step, "last_step": run.last_step},
                plugins=context.plugins.versions(),
            )
            self._recorded = True
        schedule.start(call.state, chief_hooks)
        if self._checkpointer is not None:
            self._checkpointer.make_up()

    def _before_last_save(self) -> bool:
        """Lets hooks replace variables. Returns whether one did."""
        version = self._call.state.version
        assert self._schedule is not None, "the first batch has been seen"
        self._schedule.before_last_save()
        self._schedule.agree()  # before the save, which all processes make together
        return self._call.state.version != version

    def _stops_here(self) -> bool:
        """Returns whether the run stops at the current step. All processes know this."""
        assert self._schedule is not None, "hooks have control"
        self._schedule.agree()
        return self._run.stop_reason is not None or self._run.step == self._run.last_step

    def _fetches(self, discovery: Discovery) -> frozenset[str]:
        """Returns the declared outputs that cost time or memory. Numbers are returned anyway."""
        wanted = self._run.seal_fetches(self._context.devices.processes)
        check_fetches(wanted, self._run.output_names)
        return frozenset(
            name for name in wanted if name == GRADIENT_NORM or self._run.output_kinds.get(name) in _FETCHED
        )

    def _last_commit(self, kind: type[BaseException] | None, *failure: object) -> None:
        """Waits for the commit in progress. If nothing else failed, the call raises its error."""
        self._checkpoints.finish()
        if kind is None and not self._run.failed:
            self._checkpoints.wait()

    def _hook_states(self) -> dict[str, dict[str, Any]]:
        """Returns the state of every hook, after each has seen every step."""
        return (self._calls if self._schedule is None else self._schedule).states()

    def _end_hooks(self, error: BaseException | None) -> None:
        (self._calls if self._schedule is None else self._schedule).end(error)

    def _note_failure(self, error: BaseException | None) -> None:
        """Records the error that ended the run, and drops the state."""
        if error is None:
            return
        if self._recorded and not isinstance(error, (ProcessLostError, SupersededError, StorageError)):
            reason = f"{type(error).__name__}: {error}"
            with contextlib.suppress(OSError, EstimatorError):  # the error of the run is raised anyway
                self._ledger.end(self._run.step, reason, failed=True)
                known = error.step if isinstance(error, NanLossDuringTrainingError) else None
                step = self._run.step if known is None else known  # a group of steps may have gone on
                note_end(self._context.directory, step, reason, failed=True)
        self._call.state.forget()

    @property
    def _interrupted(self) -> bool:
        """Whether the platform has interrupted training, or the work of its last step."""
        run, checkpointer = self._run, self._checkpointer
        return run.interrupted or (checkpointer is not None and checkpointer.owed_step == run.step)

    def _raise_if_interrupted(self) -> None:
        run, checkpointer = self._run, self._checkpointer
        if not self._interrupted:
            return
        saved = "not saved, because checkpoints are switched off"
        if checkpointer is not None:
            saved = f"saved at step {run.step}; start it again to continue"
            with contextlib.suppress(OSError):  # the state is saved, and the user must know that
                if self._recorded:
                    self._ledger.broken_off(run.step)
            self._call.state.forget()  # the next call resumes this one from its checkpoint, as in another process
        raise PreemptedError(
            f"Training was interrupted ({self._preemption.reason}) and its state {saved}.", step=run.step
        )


def _in_debug_mode(step: TrainStep) -> Callable[[int], Program]:
    from estimator_core._loop import debug

    return debug.program(step)


def _compiled(step: TrainStep, first: Batch) -> Callable[[int], Program]:
    return lambda count: step.single(first.features) if count == 1 else step.scan(count)


def _flops(step: TrainStep, state: object, batch: Batch) -> float | None:
    """Returns the result of XLA's analysis of the step, before optimisation.

    It reuses the trace that compiled the step.
    """
    analysis = _lowered(step, state, batch).cost_analysis()
    return None if not analysis or "flops" not in analysis else float(analysis["flops"])


def _lowered(step: TrainStep, state: object, batch: Batch) -> Any:
    jitted: Any = step.step
    return jitted.lower(state, step.gathered(batch.features), batch.labels, batch.weights)
