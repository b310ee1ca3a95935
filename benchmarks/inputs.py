"""Training on the same rows from every kind of input: MLP 16-HIDDEN-10, batch 128, Adam.

    uv run python benchmarks/inputs.py [--rounds 15] [--rows 192000] [--hidden 64] [--kinds memory CSV ...]
        [--busy N ...] [--json FILE]

A round is one pass over the rows, in order. The hand-written loops read the same source (`_by_hand.py`): slices of the
arrays, blocks of pyarrow cut into batches, the generator or the loader itself. With "checked" they also compare the
structure, dtypes and shapes of each batch with the first one, and copy the arrays of a generator, as the framework
does. Hand-written loops read the columns of a file as one matrix, and the framework reads a dict that the model_fn
stacks. The notes state the processor time of drawing a batch, without training. `inputs_files.py` measures only
reading. `torch` takes part if it can be imported.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from _by_hand import Batches, blocks, checked, parsed, slices
from _finished import Finished
from _load import add_options, compare_beside, loads_of
from _report import report, write

import estimator_core as ec
from estimator_inputs import csv_input_fn, parquet_input_fn, tfrecord_input_fn, write_tfrecord

FEATURES, CLASSES, BATCH = 16, 10, 128
COLUMNS = [f"c{index:02}" for index in range(FEATURES)]

#: The kinds of inputs that may write into their arrays again.
COPIED = ("memory", "pandas", "generator", "torch")


def arrays(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows and their labels."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, FEATURES)).astype(np.float32)
    return x, generator.integers(0, CLASSES, size=rows).astype(np.int32)


def write_files(folder: Path, x: np.ndarray, y: np.ndarray) -> None:
    """Writes the same rows as files: CSV with a header, Parquet, and TFRecord of tf.Examples."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.table({name: x[:, index] for index, name in enumerate(COLUMNS)} | {"label": y})
    csv.write_csv(table, folder / "rows.csv")
    parquet.write_table(table, folder / "rows.parquet")
    example = ec.export.example_class()

    def record(row: np.ndarray, label: int) -> bytes:
        message = example()
        message.features.feature["x"].float_list.value.extend(row)
        message.features.feature["label"].int64_list.value.append(label)
        return message.SerializeToString()

    write_tfrecord(folder / "rows.tfrecord", (record(*pair) for pair in zip(x, y, strict=True)))


def generated(rows: int) -> Batches:
    """Yields batches that a generator creates."""
    generator = np.random.default_rng(0)
    for _ in range(rows // BATCH):
        x = generator.random((BATCH, FEATURES), np.float32)
        yield x, (x[:, 0] * CLASSES).astype(np.int32)


def logits_of(variables: dict[str, Any], x: Any) -> Any:
    """Returns the logits of the network on plain arrays."""
    hidden = jax.nn.relu(x @ variables["kernel_0"] + variables["bias_0"])
    return hidden @ variables["kernel_1"] + variables["bias_1"]


def loss_of(logits: Any, labels: Any) -> Any:
    """Returns the mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def shapes_of(hidden: int) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the variables."""
    widths = (FEATURES, hidden, CLASSES)
    kernels = {f"kernel_{index}": shape for index, shape in enumerate(pairwise(widths))}
    return kernels | {f"bias_{index}": (width,) for index, width in enumerate(widths[1:])}


def hand_written(source: Callable[[], Batches], hidden: int) -> Callable[[], None]:
    """Returns a loop with donated state that reads nothing."""
    optimizer = optax.adam(1e-3)

    def step(variables: Any, slots: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda values: loss_of(logits_of(values, x), y))(variables)
        updates, slots = optimizer.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, loss

    compiled, init = jax.jit(step, donate_argnums=(0, 1)), jax.jit(optimizer.init)
    generator = np.random.default_rng(1)
    first = {name: 0.1 * generator.normal(size=shape).astype(np.float32) for name, shape in shapes_of(hidden).items()}

    def run() -> None:
        variables = jax.device_put(first)
        slots = init(variables)
        for x, y in source():
            variables, slots, _ = compiled(variables, slots, x, y)
        jax.block_until_ready(variables)

    return run


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    """Defines the same network. Columns of a file are stacked."""
    x = features["x"] if "x" in features else jnp.stack([features[name] for name in COLUMNS], axis=1)
    variables = {name: ec.get_variable(name, shape) for name, shape in shapes_of(params["hidden"]).items()}
    logits = logits_of(variables, x)
    return ec.EstimatorSpec(mode, loss=loss_of(logits, labels), train_op=optax.adam(1e-3), predictions=logits)


def estimator_loop(source: Any, hidden: int) -> Callable[[], None]:
    """Returns a warm Estimator with its default hooks: one object, one `train` call per round.

    The call ends with the input, as the hand-written loop does. A call that ends after the same number of steps would
    let the next one open the input twice: at the saved position, which is the end, and again at the start.
    """
    estimator = ec.Estimator(
        model_fn,
        params={"hidden": hidden},
        config=ec.RunConfig(
            model_dir=tempfile.mkdtemp(prefix="bench-inputs-"),
            tf_random_seed=1,
            save_checkpoints_steps=None,
            save_checkpoints_secs=None,
        ),
    )

    def run() -> None:
        estimator.train(source, hooks=[Finished()])

    return run


def sources_of(folder: Path, x: np.ndarray, y: np.ndarray) -> dict[str, tuple[Any, Callable[[], Batches]]]:
    """Returns by kind: the input that a user passes to `train`, and a hand-written reader of the same rows."""
    import grain
    import pandas as pd

    rows = len(x)
    frame = pd.DataFrame(x, columns=pd.Index(COLUMNS))
    spec = {"x": ec.export.FixedLenFeature((FEATURES,), "float32"), "label": ec.export.FixedLenFeature((), "int64")}
    record = str(folder / "rows.tfrecord")
    of_rows = grain.MapDataset.source([{"x": row, "label": label} for row, label in zip(x, y, strict=True)])
    batched = of_rows.batch(BATCH).map(lambda batch: ({"x": batch["x"]}, batch["label"]))
    columns = [np.ascontiguousarray(x[:, index]) for index in range(FEATURES)]
    whole = np.stack(columns, axis=1)
    sources: dict[str, tuple[Any, Callable[[], Batches]]] = {
        "memory": (ec.inputs.numpy_input_fn({"x": x}, y, batch_size=BATCH, shuffle=False), lambda: slices(x, y, BATCH)),
        "pandas": (
            ec.inputs.pandas_input_fn(frame, pd.Series(y), batch_size=BATCH, shuffle=False),
            lambda: slices(whole, y, BATCH),
        ),
        "CSV": (
            csv_input_fn(str(folder / "rows.csv"), BATCH, shuffle=False, label_name="label"),
            lambda: blocks(folder / "rows.csv", COLUMNS, BATCH),
        ),
        "Parquet": (
            parquet_input_fn(str(folder / "rows.parquet"), BATCH, shuffle=False, label_name="label"),
            lambda: blocks(folder / "rows.parquet", COLUMNS, BATCH),
        ),
        "TFRecord": (
            tfrecord_input_fn(record, BATCH, spec, shuffle=False, label_key="label"),
            lambda: parsed(Path(record), BATCH),
        ),
        # Without replay, so that every round draws the batches of the generator once, like the hand-written loop.
        "generator": (
            ec.inputs.from_iterable(lambda: (({"x": x}, y) for x, y in generated(rows)), replay=False),
            lambda: generated(rows),
        ),
        "grain": (lambda: batched, lambda: ((features["x"], label) for features, label in iter(batched))),
    }
    if importlib.util.find_spec("torch") is not None:
        import torch

        data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
        loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
        sources["torch"] = (
            ec.inputs.from_iterable(lambda: (({"x": x}, y) for x, y in loader), replay=False),
            lambda: ((x.numpy(), y.numpy()) for x, y in loader),
        )
    return sources


def drawing(source: Callable[[], Iterator[Any]], batches: int) -> float:
    """Returns the microseconds of the calling thread per batch, the best of three passes."""

    def once() -> float:
        began = time.thread_time()
        for _ in source():
            pass
        return (time.thread_time() - began) / batches * 1e6

    return min(once() for _ in range(3))


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, default=192_000)
    parser.add_argument("--hidden", type=int, default=64, help="width of the hidden layer, for the time of a step")
    parser.add_argument("--kinds", nargs="+", help="of inputs; default: all")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    args = parser.parse_args()
    steps, rest = divmod(args.rows, BATCH)
    assert rest == 0, f"--rows must be a multiple of {BATCH}"
    x, y = arrays(args.rows)
    with tempfile.TemporaryDirectory(prefix="bench-files-") as folder:
        write_files(Path(folder), x, y)
        sources = sources_of(Path(folder), x, y)
        kinds = args.kinds or list(sources)
        contestants: dict[str, Callable[[], None]] = {}
        pairs: list[tuple[str, str]] = []
        notes: list[str] = []
        for name in kinds:
            ours, by_hand = sources[name]
            with_checks = checked(by_hand, copied=name in COPIED)
            contestants |= {f"estimator, {name}": estimator_loop(ours, args.hidden)}
            contestants |= {f"checked loop, {name}": hand_written(with_checks, args.hidden)}
            contestants |= {f"bare loop, {name}": hand_written(by_hand, args.hidden)}
            pairs += [(f"estimator, {name}", f"{kind} loop, {name}") for kind in ("checked", "bare")]
            drawn = [
                drawing(way, steps)
                for way in (lambda ours=ours: iter(ec.inputs.open_input(ours, mode="train")), with_checks, by_hand)
            ]
            notes.append(
                f"{name}: us a batch to draw: estimator {drawn[0]:.1f}, checked {drawn[1]:.1f}, bare {drawn[2]:.1f}"
            )
        results = compare_beside(loads_of(args), contestants, rounds=args.rounds, pairs=pairs)
    title = f"Training on {args.rows:,} rows of 16 columns, {args.hidden} hidden units, batch {BATCH}"
    targets = {(f"estimator, {name}", f"checked loop, {name}"): 0.9 for name in kinds}
    write(args.json, report(title, results, steps=steps, rows=args.rows, targets=targets, notes=notes))


if __name__ == "__main__":
    main()
