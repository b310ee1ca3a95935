"""A growing table of many rows. Ids take some of them and lose them again. For new processes.

python large_growing_program.py MODEL_DIR STEPS ROWS. A directory in the place of STEPS exports to it.

Two generations of ids belong to the same buckets, spread over the whole table, and fill them. The first generation
appears in steps 1 and 2, the second from step 3 on. With `max_age=1` the second waits for one step and takes the rows
in step 4.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import jax
import numpy as np
import optax
from large_program import held_bytes

import estimator_core as ec
from estimator_tables import GrowingTable, WideIds

COLUMNS, BUCKETS, SLOTS, FIRST, RATE = 2, 4096, 16, 0.5, 0.1
FIRST_OF_SECOND = 3


def generation(number: int, rows: int) -> np.ndarray:
    """int64[BUCKETS * SLOTS]: ids of more than 32 bits, 16 for each of the buckets."""
    buckets = rows // SLOTS
    chosen = np.linspace(1, buckets - 1, BUCKETS).astype(np.uint64)[:, None]
    hashed = chosen - 1 + np.arange(SLOTS, dtype=np.uint64) * np.uint64(buckets - 1)
    high = np.uint64(7 + number)
    low = _unmixed(hashed) ^ _mixed(high + np.uint64(0x9E3779B9))
    return (high << np.uint64(32) | low).astype(np.int64).reshape(-1)


def _mixed(word: Any) -> Any:
    """The same function as in `estimator_tables.vocabulary`."""
    mask = np.uint64(0xFFFFFFFF)
    word = (word ^ (word >> np.uint64(16))) * np.uint64(0x85EBCA6B) & mask
    word = (word ^ (word >> np.uint64(13))) * np.uint64(0xC2B2AE35) & mask
    return word ^ (word >> np.uint64(16))


def _unmixed(word: Any) -> Any:
    """The inverse of `_mixed`."""
    mask, inverses = np.uint64(0xFFFFFFFF), [np.uint64(pow(each, -1, 2**32)) for each in (0xC2B2AE35, 0x85EBCA6B)]
    word = word ^ (word >> np.uint64(16))
    word = word * inverses[0] & mask
    word = word ^ (word >> np.uint64(13)) ^ (word >> np.uint64(26))
    word = word * inverses[1] & mask
    return word ^ (word >> np.uint64(16))


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    first = jax.nn.initializers.constant(FIRST)
    table = GrowingTable(rows=params["rows"], columns=COLUMNS, max_age=1, initializer=first)
    rows = ec.tensor("rows", table.lookup("user", features["user"], mode))
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"row": rows})
    return ec.EstimatorSpec(mode, loss=rows.sum(), train_op=optax.adagrad(RATE))


class Observer(ec.Hook):
    """Records the rows that each step read, and the bytes of the arrays on the fullest device."""

    def __init__(self) -> None:
        self.read: dict[int, list[float]] = {}
        self.unknown: dict[int, float] = {}

    def begin(self, run: Any) -> None:
        run.fetch("rows")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        rows = np.asarray(out["rows"])
        self.read[step] = [float(rows.min()), float(rows.max())]
        self.unknown[step] = float(out["user/unknown"])
        self.bytes = held_bytes()


def estimator_in(model_dir: str, rows: int) -> ec.Estimator:
    config = ec.RunConfig(
        model_dir=model_dir,
        tf_random_seed=1,
        default_hooks=False,
        save_checkpoints_steps=1000,  # and after the last step
        mesh={"data": len(jax.devices())},
        partition_rules=[("user/(ids|counts|seen)", ("data",))],
    )
    return ec.Estimator(model_fn, config=config, params={"rows": rows}, host_transforms=[WideIds(["user"])])


def trained(estimator: ec.Estimator, steps: int, old: np.ndarray, new: np.ndarray) -> dict[str, Any]:
    """The rows that each step read, and the bytes that a device held."""
    observer, labels = Observer(), np.zeros(len(old), np.float32)
    batches = [({"user": old if step < FIRST_OF_SECOND else new}, labels) for step in range(1, 9)]
    estimator.train(lambda: batches, max_steps=steps, hooks=[observer])
    return {"read": observer.read, "unknown": observer.unknown, "bytes": observer.bytes}


def exported(estimator: ec.Estimator, directory: str, old: np.ndarray, new: np.ndarray) -> dict[str, Any]:
    """Rows of ids of both generations, of an unknown id, and of no id: predicted, and served by an export."""
    some = np.concatenate([old[:: len(old) // 8], new[:: len(new) // 8], [3, -1]])
    predicted = [each["row"].tolist() for each in estimator.predict(lambda: [{"user": some}])]
    receiver = ec.export.build_raw_serving_input_receiver_fn({"user": np.zeros(1, np.int64)})
    path = estimator.export_saved_model(directory, receiver)
    del estimator
    served = ec.export.load(path).raw_signatures["serving_default"]
    return {"predicted": predicted, "served": np.asarray(served(user=some)["row"]).tolist()}


def main(model_dir: str, what: str, rows: str) -> None:
    began, estimator = time.perf_counter(), estimator_in(model_dir, int(rows))
    ids = [generation(number, int(rows)) for number in (1, 2)]
    found = trained(estimator, int(what), *ids) if what.isdigit() else exported(estimator, what, *ids)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # kilobytes on Linux
    print(json.dumps({**found, "peak": peak, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
