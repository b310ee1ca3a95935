"""The peers: some in separate processes, and a Keras 3 model on JAX in this process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")


def tf_estimator(python: str | None, workload: str, **numbers: int) -> dict[str, Callable[[], None]]:
    """Returns `{"tf.estimator": run}`. `run()` runs the workload once in the other process. Empty without it.

    Args:
        python: the path of an interpreter with tensorflow 2.15. None leaves the contestant out.
        workload: the name of a function of `_tf_estimator.py`.
        numbers: the arguments of the function.
    """
    return peer("tf.estimator", python, "_tf_estimator.py", workload, needs="tensorflow", **numbers)


def torch_peers(python: str | None, network: str, steps: int) -> dict[str, Callable[[], None]]:
    """Returns hand-written PyTorch and Lightning, each in a separate process. Empty without their interpreter."""
    ways = {"PyTorch": ("bare", "torch"), "Lightning": ("lightning", "lightning")}
    runs = [
        peer(name, python, "_torch_networks.py", how, needs=needs, network=network, steps=steps)
        for name, (how, needs) in ways.items()
    ]
    return {name: run for found in runs for name, run in found.items()}


def peer(
    name: str, python: str | None, script: str, workload: str, *, needs: str, **arguments: object
) -> dict[str, Callable[[], None]]:
    """Returns `{name: run}`. `run()` runs a workload once in a process of another environment. Empty without one.

    Args:
        name: the name of the contestant.
        python: the path of its interpreter. None leaves the contestant out.
        script: the file of this folder that runs the workload for each line it reads, and answers "done".
        workload: the first argument of the script.
        needs: the package that the environment must have.
        arguments: the other arguments, as `name=value`.
    """
    if python is None or not Path(python).exists():
        print(f"{name} is left out: give the interpreter of its environment (--tf-python, --torch-python, ...)")
        return {}
    finds = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({needs!r}) is None)"
    if subprocess.run([python, "-c", finds]).returncode:
        print(f"{name} is left out: {python} has no {needs}")
        return {}
    child = subprocess.Popen(
        [python, str(Path(__file__).with_name(script)), workload, *(f"{k}={v}" for k, v in arguments.items())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    to_child, from_child = child.stdin, child.stdout

    def run() -> None:
        to_child.write("go\n")
        to_child.flush()
        if from_child.readline().strip() != "done":
            raise RuntimeError(f"{script} ended during {workload!r} with exit status {child.wait()}")

    return {name: run}


def keras_mlp(widths: tuple[int, ...]) -> Any:
    """Returns the network of `mlp.py` as a compiled Keras model."""
    import keras

    hidden = [keras.layers.Dense(width, activation="relu") for width in widths[1:-1]]
    model: Any = keras.Sequential([keras.Input((widths[0],)), *hidden, keras.layers.Dense(widths[-1])])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    return model
