"""Trains a table of embeddings on the available devices, and prints JSON that `on_cards.py` compares."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.plugins import default_plugins
from estimator_tables import AllToAll
from plugins.backends_gpu.tests.separate.card_program import Clock

COLUMNS = 16
ACCESS: dict[str, Callable[[], Any]] = {
    "device": AllToAll,
    "host": lambda: AllToAll(memory="pinned_host"),
    "cached": lambda: AllToAll(memory="pinned_host", cached_rows=65_536),
}


def batches(rows: int, size: int, count: int) -> list[Any]:
    """Returns frequent and rare ids by Zipf's law, scattered over the table, and some missing ids."""
    rng = np.random.default_rng(0)
    places = rng.permutation(rows)
    made: list[Any] = []
    for _ in range(count):
        ids = places[np.minimum(rng.zipf(1.05, (size, 2)) - 1, rows - 1)].astype(np.int32)
        ids[rng.random(ids.shape) < 0.05] = -1
        made.append(({"ids": ids}, rng.normal(size=size).astype(np.float32)))
    return made


class Watch(Clock):
    """Records the seconds of the steps after the first ones, the loss of each step, and where the table ends up."""

    memory: str | None = None

    def end(self, run: Any) -> None:
        self.memory = run.state.variables["table"].sharding.memory_kind


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--access", choices=ACCESS, required=True)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--batch", type=int, default=4_096)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        normal = jax.nn.initializers.normal(0.5)
        rows = ec.sparse_lookup("table", features["ids"], (args.rows, COLUMNS), normal, access=ACCESS[args.access]())
        y = rows.sum(axis=1) @ ec.get_variable("kernel", (COLUMNS,), jax.nn.initializers.ones)
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.adam(0.01))

    backend = default_plugins().get("backend", args.backend)()
    backend.initialize()
    devices = backend.devices()
    config = ec.RunConfig(backend=args.backend, mesh={"data": -1}, tf_random_seed=1, default_hooks=False)
    watch = Watch(skipped=args.steps // 2)
    data = batches(args.rows, args.batch * len(devices), args.steps)
    estimator = ec.Estimator(model_fn, args.model_dir, config)
    estimator.train(lambda: data, max_steps=args.steps, hooks=[watch])
    told = devices[0].memory_stats() or {}
    found = {
        "device": devices[0].device_kind,
        "jax": jax.__version__,
        "table": args.access,
        "rows": args.rows,
        "memory": watch.memory,
        "steps_per_second": (len(watch.losses) - watch.skipped) / watch.seconds,
        "losses": watch.losses,
        "peak_bytes": told.get("peak_bytes_in_use"),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
