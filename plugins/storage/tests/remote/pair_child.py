"""One of the processes of a run whose model_dir is a URL, each with its own folder.

    python -m plugins.storage.tests.remote.pair_child SETTINGS_JSON

The settings are url, folder (of this test) and steps, and what happens. `die` is "sent" (before the record of step 10),
"written" (in a save, with its pack in the store) or "ended" (before the end is recorded). `who` is the process that
dies. `rival` is the step at which another run takes over. `stops` stops the run early when the loss of `held_out` has
not grown for 10 steps. `late` lets the lists of process 1 lack the manifests, as a store does that lists new objects
late.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

INDEX = int(os.environ.get("JAX_PROCESS_ID", "0"))
ROWS = 1 << 14


def main(settings: dict[str, Any]) -> None:
    """Trains, evaluates and predicts, and writes the results to the folder."""
    own = Path(settings["folder"], f"host-{INDEX}")
    own.mkdir(exist_ok=True)
    tempfile.tempdir = str(own)

    import estimator_core as ec
    from estimator_core.plugins import Plugins
    from plugins.storage.tests.remote import shelves

    read = count_reads(shelves.Shelf)
    if settings.get("late") and INDEX == 1:
        list_late(shelves.Shelf)
    if settings.get("die") and settings["who"] == INDEX:
        die(settings["die"])
    config = ec.RunConfig(
        model_dir=settings["url"],
        tf_random_seed=1,
        save_checkpoints_steps=5,
        save_summary_steps=5,
        keep_checkpoint_max=2,
        partition_rules=[(".*", ec.FullySharded())],
        mesh={"data": -1},
        **settings.get("config", {}),
    )
    brought = ["estimator-cluster", "estimator-storage", *(["estimator-hooks"] if settings.get("stops") else [])]
    plugins = Plugins(only=brought, extra=[shelves])
    run = ec.Estimator(model_fn, config=config, plugins=plugins)
    seen: list[int] = []
    hooks = [Seen(seen)]
    hooks += [Rival(settings["url"], settings["rival"])] if "rival" in settings else []
    if settings.get("stops"):
        from estimator_hooks import stop_if_no_increase_hook

        hooks.append(stop_if_no_increase_hook(run, "loss", 10, run_every_steps=5, eval_name="held_out"))
    rows = 16 // int(os.environ.get("JAX_NUM_PROCESSES", "1"))
    ec.train_and_evaluate(
        run,
        ec.TrainSpec(inputs(rows), max_steps=settings["steps"], hooks=hooks),
        ec.EvalSpec(inputs(rows, once=True), name="held_out", start_delay_secs=0),
    )
    fresh = ec.Estimator(model_fn, config=config, plugins=plugins)
    evaluated = fresh.evaluate(inputs(rows, once=True))
    predicted = np.asarray(list(fresh.predict(inputs(rows, once=True))))
    read_together = read[0]
    asked = [run.get_variable_value("table"), fresh.variables["table"]] if INDEX == 0 else []
    again = np.asarray(list(fresh.predict(inputs(rows, once=True))))
    found = {
        "step": int(evaluated["global_step"]),
        "loss": float(evaluated["loss"]),
        "predicted": predicted.tolist(),
        "read": read_together,
        "asked_alone": [zlib.crc32(table.tobytes()) for table in asked],
        "predicted_again": again.tolist(),
        "folder": run.model_dir,
        "seen": seen,
    }
    Path(settings["folder"], f"outcome-{INDEX}.json").write_text(json.dumps(found))


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """A table that is divided over the processes, with the slots of Adam."""
    import jax.numpy as jnp
    import optax

    import estimator_core as ec

    table = ec.get_variable("table", (ROWS, 4), lambda key, shape, dtype: jnp.linspace(-1, 1, ROWS * 4).reshape(shape))
    predictions = jnp.take(table, features["id"], axis=0).sum(1)
    loss = None if labels is None else jnp.mean((predictions - labels) ** 2)
    return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=optax.adam(0.1))


def inputs(rows: int, *, once: bool = False) -> Any:
    """Returns batches of 16 examples over all processes."""
    import estimator_core as ec

    ids = np.random.default_rng(0).integers(0, ROWS, 64).astype(np.int32)
    labels = (ids % 7).astype(np.float32)
    return ec.inputs.numpy_input_fn(
        {"id": ids}, labels, batch_size=rows, num_epochs=1 if once else None, shuffle=not once, seed=3
    )


class Seen:
    """Records the steps, and the end as -1."""

    def __new__(cls, seen: list[int]) -> Any:
        import estimator_core as ec

        class Notes(ec.Hook):
            def after_step(self, run: Any, step: int, out: Any) -> None:
                seen.append(step)

            def end(self, run: Any) -> None:
                seen.append(-1)

        return Notes()


class Rival:
    """Lets another run take over at a step, in process 1."""

    def __new__(cls, url: str, at: int) -> Any:
        import estimator_core as ec
        from estimator_core.journal import take_over
        from plugins.storage.tests.remote.shelves import Shelf

        class TakesOver(ec.Hook):
            def after_step(self, run: Any, step: int, out: Any) -> None:
                if step == at and INDEX == 1:
                    take_over(Shelf(url), "host-b, process 2", lambda lineage: 0)

        return TakesOver()


def count_reads(kind: type) -> list[int]:
    """Counts the bytes of packs that this process reads."""
    total, real = [0], kind.get_ranges

    def counted(self: Any, key: str, ranges: Any) -> Any:
        if key.endswith(".pack"):
            total[0] += sum(end - begin for begin, end in ranges)
        return real(self, key, ranges)

    kind.get_ranges = counted
    return total


def list_late(kind: type) -> None:
    """Leaves the manifests of checkpoints out of lists."""
    real = kind.list
    kind.list = lambda self, prefix: (one for one in real(self, prefix) if not one.key.endswith("manifest.json"))


def die(where: str) -> None:
    """Sends SIGKILL when a checkpoint of step 10, or this process's part of it, is in the store but not recorded."""
    from estimator_core._journal.entries import Ended, Saved
    from estimator_core._journal.writer import Journal
    from estimator_storage.at_urls import WorkingCopy

    def before(real: Any, when: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if when(*args):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    if where == "sent":

        def records_10(journal: Any, *entries: Any) -> bool:
            saved = [one for one in entries if isinstance(one, Saved)]
            return any(one.step == 10 and one.place.startswith("data/") for one in saved)

        Journal.publish = before(Journal.publish, records_10)
    elif where == "ended":

        def records_the_end(journal: Any, *entries: Any) -> bool:
            return any(isinstance(one, Ended) for one in entries)

        Journal.publish = before(Journal.publish, records_the_end)
    else:
        real = WorkingCopy._send

        def sent(self: Any, work: Path, place: str) -> None:
            real(self, work, place)
            if "-0000000010-" in place:
                os.kill(os.getpid(), signal.SIGKILL)

        WorkingCopy._send = sent


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
