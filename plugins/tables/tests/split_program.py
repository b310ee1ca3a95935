"""A model with a table that several devices share, for new processes with these devices.

    python split_program.py ROOT JOB...

JOB: train:OPTIMIZER:NAME:UNTIL, the same with debug for train, evaluate:OPTIMIZER:NAME or traffic.

Prints one JSON value per job.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.model import WholeTable
from estimator_tables import AllToAll

ROWS, COLUMNS, BATCH, STEPS = 640, 4, 48, 5
OPTIMIZERS = {
    "adagrad": lambda: optax.adagrad(0.1),
    "adam": lambda: optax.adam(0.05),
    "on_host": lambda: optax.adam(0.05),
    "cached": lambda: optax.adam(0.05),
    # Mixes the rows of a table. The result is wrong if each device uses only its own rows.
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.05), optax.sgd(0.5)),
}


def batches(*, ragged: bool = False) -> list[Any]:
    """Ids of every kind: repeated, frequent, missing, all of one owner. The last batch may be ragged."""
    rng = np.random.default_rng(3)
    made: list[Any] = []
    for number in range(STEPS):
        ids = np.minimum(rng.zipf(1.3, (BATCH, 3)) - 1, ROWS - 1).astype(np.int32)
        ids[rng.random(ids.shape) < 0.1] = -1
        ids[0] = ROWS
        if number == 1:
            ids = rng.integers(0, ROWS // 8, ids.shape).astype(np.int32)  # more ids of one owner than a message holds
        made.append(({"ids": ids}, rng.normal(size=BATCH).astype(np.float32)))
    features, labels = made[-1]
    return [*made[:-1], ({"ids": features["ids"][:29]}, labels[:29])] if ragged else made


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    memory = "pinned_host" if params in ("on_host", "cached") else None
    access = AllToAll(memory=memory, cached_rows=8 if params == "cached" else 0)

    def rows() -> jax.Array:
        return ec.sparse_lookup(
            "table", features["ids"], (ROWS, COLUMNS), jax.nn.initializers.normal(0.5), access=access
        )

    kernel = ec.get_variable("kernel", (COLUMNS,), jax.nn.initializers.ones)
    y = (rows().sum(axis=1) + jnp.tanh(rows()).max(axis=1)) @ kernel
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    loss = jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=OPTIMIZERS[params]())


def train(model_dir: str, optimizer: str, until: int, **settings: Any) -> ec.Estimator:
    """Trains up to a step on all devices. Each step has its own batch."""
    estimator = estimator_in(model_dir, optimizer, **settings)
    newest = estimator.latest_checkpoint()
    start = int(Path(newest).name) if newest else 0
    return estimator.train(lambda: batches(ragged=optimizer in ("adam", "on_host", "cached"))[start:until])


def estimator_in(model_dir: str, optimizer: str, **settings: Any) -> ec.Estimator:
    """The estimator of the model, on all devices."""
    mesh = {"data": len(jax.devices())}
    config = ec.RunConfig(model_dir=model_dir, tf_random_seed=1, default_hooks=False, mesh=mesh, **settings)
    return ec.Estimator(model_fn, config=config, params=optimizer)


def traffic() -> dict[str, dict[str, Any]]:
    """The compiled programs of a look-up and of an update, with `AllToAll` and without."""
    rows, columns, ids = 400_000, 16, 8192
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    split, whole = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (["data"], []))
    optimizer = optax.with_extra_args_support(optax.adagrad(0.1))

    def shape(*sizes: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, dtype, sharding=split)

    table, wanted, gradients = shape(rows, columns), shape(ids, dtype=jnp.int32), shape(ids, columns)
    slots = jax.tree.map(
        lambda leaf: shape(*leaf.shape) if leaf.ndim else jax.ShapeDtypeStruct((), leaf.dtype, sharding=whole),
        jax.eval_shape(optimizer.init, table),
    )
    found: dict[str, dict[str, Any]] = {}
    with jax.set_mesh(mesh):
        for name, access in {"all_to_all": AllToAll(), "plain": WholeTable()}.items():
            read = jax.jit(access.read, out_shardings=split).lower(table, wanted).compile()
            update = jax.jit(
                lambda *args, access=access: access.update(optimizer, *args),
                donate_argnums=(0, 1),
                out_shardings=(split, jax.tree.map(lambda leaf: leaf.sharding, slots)),
            )
            updated = update.lower(table, slots, wanted, gradients).compile()
            memory = updated.memory_analysis()
            assert memory is not None
            found[name] = {
                "read": read.as_text(),
                "update": updated.as_text(),
                "temporary_bytes": memory.temp_size_in_bytes,
            }
    return found


def main(root: str, *jobs: str) -> None:
    for job in jobs:
        kind, *rest = job.split(":")
        if kind == "traffic":
            print(json.dumps(traffic()))
        elif kind in ("train", "debug"):
            optimizer, name, until = rest
            train(f"{root}/{name}", optimizer, int(until), debug=kind == "debug")
            print("null")
        else:
            optimizer, name = rest
            estimator = estimator_in(f"{root}/{name}", optimizer)
            predictions = [float(each["y"]) for each in estimator.predict(lambda: [batches()[-1][0]])]
            print(json.dumps([float(estimator.evaluate(batches)["loss"]), *predictions]))


if __name__ == "__main__":
    main(*sys.argv[1:])
