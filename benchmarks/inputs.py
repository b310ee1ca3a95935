"""Training on the same rows from memory, from a CSV file and from a generator: MLP 16-64-10, batch 128, Adam.

    uv run python benchmarks/inputs.py [--rounds 15] [--rows 192000] [--busy N ...] [--json FILE]

A round is one pass over the rows, in order. The hand-written loops read the same source by hand: slices of the arrays,
blocks of pyarrow's CSV reader cut into batches, the generator itself. Their columns come as one matrix, those of the
CSV input as a dict that the model_fn stacks. `inputs_files.py` measures reading alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _finished import Finished
from _load import add_options, compare_beside, loads_of
from _report import report, write

import estimator_core as ec
from estimator_inputs import csv_input_fn

WIDTHS, BATCH = (16, 64, 10), 128
COLUMNS = [f"c{index:02}" for index in range(WIDTHS[0])]
SHAPES = {f"kernel_{index}": shape for index, shape in enumerate(pairwise(WIDTHS))} | {
    f"bias_{index}": (width,) for index, width in enumerate(WIDTHS[1:])
}
Batches = Iterator[tuple[np.ndarray, np.ndarray]]


def arrays(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows and their labels."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, WIDTHS[0])).astype(np.float32)
    return x, generator.integers(0, WIDTHS[-1], size=rows).astype(np.int32)


def write_csv(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    """The same rows as a file with a header."""
    import pyarrow as pa
    from pyarrow import csv

    columns = {name: x[:, index] for index, name in enumerate(COLUMNS)}
    csv.write_csv(pa.table(columns | {"label": y}), path)


def slices(x: np.ndarray, y: np.ndarray) -> Batches:
    """Batches of the arrays, by hand."""
    for start in range(0, len(x), BATCH):
        yield x[start : start + BATCH], y[start : start + BATCH]


def csv_blocks(path: Path) -> Batches:
    """Batches of the file, by hand: pyarrow reads blocks ahead in a thread; what a block leaves over goes on."""
    from pyarrow import csv

    left_x, left_y = np.empty((0, WIDTHS[0]), np.float32), np.empty(0, np.int32)
    types = dict.fromkeys(COLUMNS, "float32") | {"label": "int32"}
    for block in csv.open_csv(path, convert_options=csv.ConvertOptions(column_types=types)):
        columns = [block.column(name).to_numpy() for name in COLUMNS]
        x = np.concatenate([left_x, np.stack(columns, axis=1)])
        y = np.concatenate([left_y, block.column("label").to_numpy()])
        whole = len(x) // BATCH * BATCH
        yield from slices(x[:whole], y[:whole])
        left_x, left_y = x[whole:], y[whole:]
    if len(left_x):
        yield left_x, left_y


def generated(rows: int) -> Batches:
    """A generator that makes its batches."""
    generator = np.random.default_rng(0)
    for _ in range(rows // BATCH):
        x = generator.random((BATCH, WIDTHS[0]), np.float32)
        yield x, (x[:, 0] * WIDTHS[-1]).astype(np.int32)


def logits_of(variables: dict[str, Any], x: Any) -> Any:
    """The network on plain arrays."""
    hidden = jax.nn.relu(x @ variables["kernel_0"] + variables["bias_0"])
    return hidden @ variables["kernel_1"] + variables["bias_1"]


def loss_of(logits: Any, labels: Any) -> Any:
    """Mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def hand_written(source: Callable[[], Batches]) -> Callable[[], None]:
    """Donated state, nothing read inside."""
    optimizer = optax.adam(1e-3)

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda values: loss_of(logits_of(values, x), y))(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    compiled, init = jax.jit(step, donate_argnums=(0, 1)), jax.jit(optimizer.init)
    generator = np.random.default_rng(1)
    first = {name: 0.1 * generator.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}

    def run() -> None:
        variables = jax.device_put(first)
        slots = init(variables)
        for x, y in source():
            variables, slots, _ = compiled(variables, slots, x, y)
        jax.block_until_ready(variables)

    return run


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """The same network; columns of a file are stacked."""
    x = features["x"] if "x" in features else jnp.stack([features[name] for name in COLUMNS], axis=1)
    logits = logits_of({name: ec.get_variable(name, shape) for name, shape in SHAPES.items()}, x)
    return ec.EstimatorSpec(mode, loss=loss_of(logits, labels), train_op=optax.adam(1e-3), predictions=logits)


def estimator_loop(source: Any, steps: int) -> Callable[[], None]:
    """The Estimator, warm, with its default hooks: one object, one `train` call a round."""
    estimator = ec.Estimator(
        model_fn,
        config=ec.RunConfig(
            model_dir=tempfile.mkdtemp(prefix="bench-inputs-"),
            tf_random_seed=1,
            save_checkpoints_steps=None,
            save_checkpoints_secs=None,
        ),
    )

    def run() -> None:
        estimator.train(source, steps=steps, hooks=[Finished()])

    return run


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, default=192_000)
    parser.add_argument("--json", type=Path)
    add_options(parser)
    args = parser.parse_args()
    steps, rest = divmod(args.rows, BATCH)
    assert rest == 0, f"--rows must be a multiple of {BATCH}"
    x, y = arrays(args.rows)
    with tempfile.TemporaryDirectory(prefix="bench-csv-") as folder:
        write_csv(path := Path(folder, "rows.csv"), x, y)
        # Without replay, so that every round draws the batches of the generator once, like the loop beside it.
        from_generator = ec.inputs.from_iterable(lambda: (({"x": x}, y) for x, y in generated(args.rows)), replay=False)
        sources: dict[str, tuple[Any, Callable[[], Batches]]] = {
            "memory": (ec.inputs.numpy_input_fn({"x": x}, y, batch_size=BATCH, shuffle=False), lambda: slices(x, y)),
            "CSV": (csv_input_fn(str(path), BATCH, shuffle=False, label_name="label"), lambda: csv_blocks(path)),
            "generator": (from_generator, lambda: generated(args.rows)),
        }
        contestants: dict[str, Callable[[], None]] = {}
        for name, (ours, by_hand) in sources.items():
            contestants |= {f"estimator, {name}": estimator_loop(ours, steps)}
            contestants |= {f"bare loop, {name}": hand_written(by_hand)}
        pairs = [(f"estimator, {name}", f"bare loop, {name}") for name in sources]
        results = compare_beside(loads_of(args), contestants, rounds=args.rounds, pairs=pairs)
    title = f"Training on {args.rows:,} rows of 16 columns from three sources, batch {BATCH}"
    write(args.json, report(title, results, steps=steps, rows=args.rows))


if __name__ == "__main__":
    main()
