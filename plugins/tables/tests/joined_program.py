"""The model of `cached_program.py`, trained by two processes, each of which has half of every batch.

    python joined_program.py ADDRESS PROCESS MODEL_DIR CACHED_ROWS STEPS [KILLED_AT]

Only the second process is killed. After the training both evaluate, and the second one prints the loss.
"""

from __future__ import annotations

import sys
from typing import Any

import jax

address, process, model_dir, cached_rows, steps, *killed = sys.argv[1:]
jax.distributed.initialize(address, num_processes=2, process_id=int(process))

from cached_program import BATCH, batches, estimator_in  # noqa: E402
from own_process import Killed  # noqa: E402

half = slice(int(process) * BATCH // 2, (int(process) + 1) * BATCH // 2)


def mine() -> list[Any]:
    """The rows of this process in every batch."""
    return [({"ids": features["ids"][half]}, labels[half]) for features, labels in batches(100)]


estimator = estimator_in(model_dir, int(cached_rows), save_checkpoints_steps=10)
dies_at = int(killed[0]) if killed and process == "1" else -1
estimator.train(mine, max_steps=int(steps), hooks=[Killed(dies_at)])
loss = estimator.evaluate(lambda: mine()[:3])["loss"]
if process == "1":
    print(f"loss {loss!r}")
