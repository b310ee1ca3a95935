"""Tests of predictions of which a program reads only the first ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec


class Ends(ec.Hook):
    def end(self, run):
        print("ended at", run.mode)


def model_fn(features, labels, mode):
    y = features["x"] * ec.get_variable("w", ())
    return ec.EstimatorSpec(mode, predictions={"y": y}, loss=jnp.mean(y), train_op=optax.sgd(0.1))


rows = ec.inputs.numpy_input_fn({"x": np.ones(64, np.float32)}, np.ones(64), batch_size=2, shuffle=False)
estimator = ec.Estimator(model_fn, "run", ec.RunConfig(prefetch=2)).train(rows, steps=1)
predictions = estimator.predict(rows, hooks=[Ends()])
print(next(predictions).keys())
"""


def test_they_end_with_the_program(tmp_path: Path) -> None:
    """Hooks and observers are called at the end, while modules still work, and no ignored exception is printed."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["dict_keys(['y'])", "ended at infer"]
    assert "Exception ignored" not in done.stderr


SEVERAL = """
class Raises(ec.Hook):
    def end(self, run):
        print("ended", flush=True)
        raise RuntimeError("the disk is gone")


unread = [estimator.predict(rows, hooks=[Raises()]) for _ in range(3)]
print([len(next(one)) for one in unread], flush=True)
raise SystemExit(7)
"""


def test_one_that_ends_badly_keeps_none_of_the_others_from_its_end(tmp_path: Path) -> None:
    """Each error is shown, and the exit status of the program stays its own."""
    done = subprocess.run([sys.executable, "-c", PROGRAM + SEVERAL], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 7
    _, read, *ends = done.stdout.splitlines()
    assert read == "[1, 1, 1]"
    assert sorted(ends) == ["ended", "ended", "ended", "ended at infer"]
    assert done.stderr.count("RuntimeError: the disk is gone") == 3
