"""Trains a small language model on the available devices, and prints JSON that `on_cards.py` compares."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import estimator_backends_gpu
import estimator_core as ec
from estimator_backends_gpu.flags import DEFAULT_FLAGS
from estimator_core.plugins import default_plugins
from plugins.backends_gpu.tests.separate.bound_programs import transformer

LENGTH, VOCABULARY = 128, 1024


def batches(size: int, seed: int = 0) -> Iterator[Any]:
    """Returns sequences that count upwards from a random number, which a model learns in few steps."""
    rng = np.random.default_rng(seed)
    while True:
        tokens = (rng.integers(0, VOCABULARY, (size, 1)) + np.arange(LENGTH)) % VOCABULARY
        yield {"tokens": tokens.astype(np.int32)}, np.zeros(size, np.int32)


class Clock(ec.Hook):
    """Records the seconds of the steps after the first `skipped`, and the loss of each step."""

    def __init__(self, skipped: int) -> None:
        self.skipped, self.losses, self.began, self.seconds = skipped, list[float](), 0.0, 0.0

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.losses.append(float(out["loss"]))
        if len(self.losses) == self.skipped:
            self.began = time.perf_counter()
        self.seconds = time.perf_counter() - self.began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--flags", choices=["on", "off"], default="on")
    parser.add_argument("--steps", type=int, default=30, help="the step at which the training ends")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=32, help="examples for each device")
    args = parser.parse_args()
    if args.flags == "off":
        estimator_backends_gpu.configure(flags={flag.name: None for flag in DEFAULT_FLAGS})
    backend = default_plugins().get("backend", args.backend)()
    backend.initialize()
    devices = backend.devices()
    size = args.batch * len(devices)
    config = ec.RunConfig(
        backend=args.backend, mesh={"data": -1}, precision=args.precision, tf_random_seed=1, default_hooks=False
    )
    estimator = ec.Estimator(transformer(args.width, 4, vocabulary=VOCABULARY), args.model_dir, config)
    clock = Clock(skipped=5)
    estimator.train(lambda: batches(size), max_steps=args.steps, hooks=[clock])
    told = devices[0].memory_stats() or {}
    steps = len(clock.losses)
    found = {
        "device": devices[0].device_kind,
        "devices": len(devices),
        "jax": jax.__version__,
        "flags": args.flags,
        "precision": args.precision,
        "steps_per_second": (steps - clock.skipped) / clock.seconds if steps > clock.skipped else None,
        "losses": clock.losses,
        "peak_bytes": told.get("peak_bytes_in_use"),
        "weights": float(sum(np.abs(np.asarray(value, np.float64)).sum() for value in estimator.variables.values())),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
