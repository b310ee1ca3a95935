"""Training steps per second of BERT: one sentence per row, packed, a loop in JAX, and the Trainer of transformers.

    uv run python benchmarks/bert.py [--torch-python PYTHON] [--texts real|full] [--size tiny|mini|...] [--batch 16]
        [--length 128] [--steps 12] [--rounds 15] [--precision float32] [--json FILE]

All sides train the same weights on the same sentences with AdamW and clipping, dropout 0.1 everywhere, two threads on a
CPU. `--texts real` uses sentences from the help of Python, `full` uses rows without padding. Each side runs in a
process of its own, the Trainer with a Python that has PyTorch. They take turns in random order and never run at the
same time. Peak memory is measured per process, or per card if one is used. On a card, all sides multiply float32 as
TensorFloat-32. Figures are in docs/bert.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _bert_text import saved
from _report import report, write
from _side_by_side import compared

PASSED_ON = ("batch", "length", "steps", "threads", "precision")


class Side:
    """A process that trains on request, and its measurements."""

    def __init__(self, python: str, kind: str, directory: str, sentences: Path, args: argparse.Namespace) -> None:
        read, write_end = os.pipe()
        script = str(Path(__file__).with_name("_bert_side.py"))
        command = [python, script, "--side", kind, "--weights", directory, "--replies", str(write_end)]
        command += ["--sentences", str(sentences)]
        command += [f"--{name}={getattr(args, name)}" for name in PASSED_ON]
        # Several processes share a GPU, so none of them takes all of its memory at once.
        environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[write_end],
            text=True,
            env=environment,
        )
        os.close(write_end)
        self._replies = os.fdopen(read)
        self.seconds: list[float] = []
        self.peak_mb = 0.0

    def _answer(self) -> dict[str, Any]:
        line = self._replies.readline()
        if not line:
            raise SystemExit(f"a process of the benchmark ended with status {self._process.wait()}")
        return json.loads(line)

    def wait(self) -> None:
        """Waits until it has trained once, to warm up."""
        self._answer()

    def train(self) -> None:
        """Trains once, and records the seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        found = self._answer()
        self.seconds.append(found["seconds"])
        self.peak_mb = max(self.peak_mb, found["peak_mb"])

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def pretrained(size: str, place: str) -> str:
    """Returns a directory of random weights that both sides start from."""
    from estimator_canned_bert import BertConfig, encoder_shapes, save_pretrained

    config = BertConfig.of_size(size)
    shapes = encoder_shapes(config) | {"output_weights": (2, config.hidden_size), "output_bias": (2,)}
    rng = np.random.default_rng(0)
    values = {name: (0.02 * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}
    values |= {name: np.ones_like(value) for name, value in values.items() if name.endswith("gamma")}
    return save_pretrained(place, values, config)


def has_torch(python: str) -> bool:
    """Returns whether an interpreter can train with transformers."""
    probe = [python, "-c", "import torch, transformers, accelerate"]
    return subprocess.run(probe, capture_output=True).returncode == 0


def chosen(args: argparse.Namespace) -> dict[str, tuple[str, str]]:
    """Returns name, interpreter and kind of every side that can run here."""
    found = {"BertClassifier": (sys.executable, "ours"), "loop in JAX": (sys.executable, "plain")}
    if args.texts == "real":
        found = {"BertClassifier, packed": (sys.executable, "packed"), **found}
    if has_torch(args.torch_python):
        found["Trainer of transformers"] = (args.torch_python, "theirs")
        found["Trainer, torch.compile"] = (args.torch_python, "compiled")
    else:
        print(f"bert: no Trainer, {args.torch_python} has no torch, transformers and accelerate (--torch-python)")
    return found


def measure(args: argparse.Namespace) -> None:
    """Runs alternating rounds of the processes."""
    with tempfile.TemporaryDirectory() as place:
        directory = pretrained(args.size, place)
        sentences = saved(Path(place), args.texts, args.steps * args.batch, args.length, 8000)
        sides = {name: Side(*side, directory, sentences, args) for name, side in chosen(args).items()}
        for side in sides.values():
            side.wait()
        order = np.random.default_rng(0)
        for _ in range(args.rounds):
            for name in order.permutation(list(sides)):
                sides[name].train()
        for side in sides.values():
            side.close()
    ours, *others = sides
    seconds = {name: side.seconds for name, side in sides.items()}
    results = [compared(seconds, ours, other) for other in others]
    results += [compared(seconds, "BertClassifier", other) for other in others if "BertClassifier" not in (ours, other)]
    notes = [
        f"{name}: {args.steps / float(np.median(side.seconds)):.2f} steps/s, peak memory {side.peak_mb:.0f} MB"
        for name, side in sides.items()
    ]
    title = f"BERT-{args.size}, {args.texts} sentences, batch {args.batch} x {args.length} tokens, {args.precision}"
    write(args.json, report(title, results, steps=args.steps, unit=("ms/step", 1e3 / args.steps), notes=notes))


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="mini", help="of BERT: tiny, mini, small, ...")
    parser.add_argument(
        "--texts", choices=("real", "full"), default="real", help="sentences of real length, or full rows"
    )
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--torch-python", default=sys.executable, help="a Python with torch, transformers, accelerate")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    measure(args)


if __name__ == "__main__":
    main()
