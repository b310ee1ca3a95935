"""Training from files that is interrupted or killed during an epoch and resumed ends with the same weights."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

import estimator_core as ec
from plugins.inputs.tests.written import WRITERS, input_of, some_rows, write_files

ROOT = Path(__file__).parents[3]
STEPS = 40


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A linear model. Its weights depend on the order of the rows."""
    import jax.numpy as jnp

    weights = ec.get_variable("weights", (3,))
    numbers = jnp.stack([features["weight"], features["count"] / 1000, features["id"] / 100], axis=1)
    loss = jnp.mean((numbers @ weights - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(0.05))


def estimator(model_dir: Path) -> ec.Estimator:
    config = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, save_checkpoints_steps=7, save_summary_steps=1000)
    return ec.Estimator(model_fn, config=config)


def train_input(kind: str, pattern: str) -> Any:
    return input_of(
        kind, pattern, 16, shuffle=True, shuffle_buffer_size=50, num_epochs=None, reader_num_threads=2, block_bytes=512
    )


def weights_of(model_dir: Path) -> bytes:
    return np.asarray(estimator(model_dir).get_variable_value("weights")).tobytes()


@pytest.mark.parametrize(
    "kind", ["csv", "tfrecord", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("jsonl", "parquet"))]
)
def test_training_goes_on_in_the_middle_of_an_epoch(tmp_path: Path, kind: str) -> None:
    pattern = write_files(tmp_path, kind, some_rows(203), 3)
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    estimator(straight).train(train_input(kind, pattern), max_steps=STEPS)
    for stop in (5, 19, STEPS):
        estimator(resumed).train(train_input(kind, pattern), max_steps=stop)
    assert weights_of(resumed) == weights_of(straight)


def test_strings_stay_beside_the_batch_and_labels_train(tmp_path: Path) -> None:
    pattern = write_files(tmp_path, "csv", some_rows(40), 2)
    source = ec.inputs.open_input(input_of("csv", pattern, 8, shuffle=False), mode="train")
    batch = next(source)
    assert sorted(batch.features) == ["count", "id", "weight"]
    assert batch.features["id"].dtype == np.int32
    assert batch.host["word"].dtype == object
    assert batch.labels.dtype == np.int32
    source.close()


def train_and_die(folder: Path, pattern: str, model_dir: Path, kill_at: int) -> int:
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
import estimator_core as ec
from pathlib import Path
from plugins.inputs.tests.test_training import STEPS, estimator, train_input

class Dies(ec.Hook):
    def next_step(self, step):
        return {kill_at} if step < {kill_at} else None

    def after_step(self, run, step, out):
        os.kill(os.getpid(), signal.SIGKILL)

hooks = [Dies()] if {kill_at} else []
estimator(Path({str(model_dir)!r})).train(train_input("tfrecord", {pattern!r}), max_steps=STEPS, hooks=hooks)
"""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, check=False).returncode


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    pattern = write_files(tmp_path, "tfrecord", some_rows(203), 3)
    assert train_and_die(tmp_path, pattern, tmp_path / "straight", 0) == 0
    for kill_at in (10, 23, 36):
        assert train_and_die(tmp_path, pattern, tmp_path / "killed", kill_at) == -signal.SIGKILL
    assert train_and_die(tmp_path, pattern, tmp_path / "killed", 0) == 0
    assert weights_of(tmp_path / "killed") == weights_of(tmp_path / "straight")


MEMORY = """
import resource, sys
sys.path.insert(0, {root!r})
from pathlib import Path
import estimator_core as ec
from plugins.inputs.tests.test_training import estimator, input_of

source = input_of({kind!r}, {pattern!r}, 4096, shuffle=True)
warm = ec.inputs.open_input(source, mode="train")
for _ in range(20):
    next(warm)
warm.close()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(batch.size for batch in ec.inputs.open_input(source, mode="train"))
print(rows, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(WRITERS))
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    """An epoch of many blocks needs no more memory than its first window. The difference is below 64 MiB."""
    pattern = write_files(tmp_path, kind, some_rows(40_000), 1)
    (path,) = tmp_path.glob("part-0.*")
    for number in range(1, 12):
        path.with_stem(f"part-{number}").symlink_to(path)
    program = MEMORY.format(root=str(ROOT), kind=kind, pattern=pattern)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    rows, before, after = map(int, done.stdout.split())
    assert rows == 12 * 40_000
    assert after - before < 64 << 10  # KiB


def test_an_iterator_that_is_not_read_to_its_end_lets_the_program_end_silently(tmp_path: Path) -> None:
    """Its threads have ended when the interpreter removes the names of modules."""
    (tmp_path / "rows.csv").write_text("x\n" + "1\n" * 1000)
    program = (
        "from estimator_inputs import csv_input_fn\nrows = csv_input_fn('rows.csv', 2, shuffle=False)()\nnext(rows)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
