"""One process of a run whose model_dir is a URL. It kills itself at a call of the storage.

    python -m plugins.storage.tests.remote.child URL MAX_STEPS [KILL_AT]

SIGKILL comes before the writing call KILL_AT / 2 if KILL_AT is even, and after it if KILL_AT is odd.
"""

from __future__ import annotations

import os
import signal
import sys

import estimator_core as ec
from estimator_core.plugins import Plugins
from estimator_core.storage import LocalStorage, open_storage
from plugins.storage.tests.remote import shelves
from plugins.storage.tests.remote.linear import batches, held_out, model_fn


def kill_at(number: int, kind: type) -> None:
    """Makes the process kill itself at a writing call of a storage class."""
    calls = -1

    def wrapped(original):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            mine = calls
            if 2 * mine == number:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*args, **kwargs)
            if 2 * mine + 1 == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in ("put_new", "put_stream", "delete"):
        setattr(kind, name, wrapped(getattr(kind, name)))


def main() -> None:
    """Trains and evaluates."""
    url, last, *rest = sys.argv[1:]
    if rest:
        kill_at(int(rest[0]), LocalStorage if url.startswith(shelves.PREFIX) else type(open_storage(url)))
    config = ec.RunConfig(
        model_dir=url, tf_random_seed=1, save_checkpoints_steps=5, save_summary_steps=5, keep_checkpoint_max=3
    )
    run = ec.Estimator(model_fn, config=config, plugins=Plugins(only=["estimator-storage"], extra=[shelves]))
    train = ec.TrainSpec(batches, max_steps=int(last))
    ec.train_and_evaluate(run, train, ec.EvalSpec(held_out, steps=None, throttle_secs=0, start_delay_secs=0))


if __name__ == "__main__":
    main()
