"""One `Estimator.train` call, from its first check to its last file."""

from __future__ import annotations

import contextlib
import logging
from functools import partial

from estimator_core._checkpoint import CheckpointStore
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._checkpoint.write_errors import placed
from estimator_core._cluster.processes import announce, ending_together
from estimator_core._loop.ending import owed_ending
from estimator_core._loop.ledgers import ObserverLedger, WriterLedger
from estimator_core._loop.resuming import find_start
from estimator_core._loop.taking_over import own_together, shelf_of, take_model_dir
from estimator_core._loop.train_call import TrainCall
from estimator_core._loop.train_run import TrainRun
from estimator_core._summaries import read_eval_metrics

_log = logging.getLogger("estimator_core")


def execute(call: TrainCall) -> str:
    """Trains; returns why it ended.

    Raises:
        PreemptedError: the platform requested a stop; the state is saved.
    """
    devices = call.devices
    processes, config = devices.processes, devices.config
    with placed(call.model_dir), ending_together(processes):
        announce(
            processes,
            "train",
            hooks=call.hooks,
            versions=call.plugins.versions,
            steps=call.steps,
            max_steps=call.max_steps,
        )
        with (
            own_together(call.model_dir, processes, call.place.url),
            Preemption(grace_secs=config.grace_secs) as preemption,
            contextlib.ExitStack() as cleanup,
        ):
            publisher = cleanup.enter_context(call.place.training(config, processes))
            call.plugins.open_call(config)
            # The first process to ask for devices waits until all do; below one of them may have to wait for another.
            _ = devices.placement
            model_dir = str(call.model_dir)
            owed = partial(owed_ending, processes, model_dir=model_dir, steps=call.steps, max_steps=call.max_steps)
            start, journal = take_model_dir(
                call.model_dir, processes, lambda: find_start(devices, call.state, model_dir, call.plugins, owed)
            )
            best = config.keep_checkpoint_best
            store = cleanup.enter_context(
                CheckpointStore(
                    call.model_dir,
                    keep_max=config.keep_checkpoint_max,
                    keep_every_n_hours=config.keep_checkpoint_every_n_hours,
                    keep_best=best,
                    results=lambda: read_eval_metrics(call.estimator.eval_dir(best and best.evaluation)),
                    processes=processes,
                    publisher=publisher,
                    shelf=shelf_of(call.model_dir, journal),
                    full_every=config.full_checkpoint_every,
                )
            )
            if start.items is not None:
                call.plugins.require_made_with(start.items.manifest.get("plugins", ()))
            ledger = (
                ObserverLedger(call.model_dir)
                if journal is None
                else WriterLedger(journal, call.model_dir, start.step, call.state)
            )
            return TrainRun(call, start, store, ledger, preemption, cleanup).to_end()
