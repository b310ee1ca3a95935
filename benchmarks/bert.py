"""Training steps a second of BERT, side by side with the Trainer of transformers in one run.

    python benchmarks/bert.py [--size mini] [--batch 16] [--length 128] [--steps 6] [--rounds 9] [--precision float32]

Both sides train the same weights on the same batches with AdamW and clipping, dropout 0.1 everywhere, two threads on a
CPU. Each runs in a process of its own, the Trainer in that of a Python that has PyTorch (--torch-python); they take
turns and never run at the same time. Peak memory is each process's own. Figures are in docs/bert.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np


def batches(length: int, batch: int, count: int, vocabulary: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        ids = rng.integers(5, vocabulary, size=(batch, length)).astype(np.int32)
        lengths = rng.integers(length // 2, length + 1, size=batch)
        mask = (np.arange(length)[None] < lengths[:, None]).astype(np.int32)
        labels = rng.integers(0, 2, size=batch).astype(np.int32)
        made.append({"input_ids": ids * mask, "attention_mask": mask, "labels": labels})
    return made


class Ours:
    """The Estimator, on the weights of a Hugging Face directory."""

    def __init__(self, directory: str, args: argparse.Namespace) -> None:
        import estimator_core as ec
        from estimator_canned_bert import BertClassifier, Optimization

        self.classifier = BertClassifier(
            num_labels=2,
            init_checkpoint=directory,
            learning_rate=1e-5,
            optimization=Optimization(bias_correction=True, epsilon=1e-8),
            compute_dtype=args.precision,
            config=ec.RunConfig(
                model_dir=tempfile.mkdtemp(),
                tf_random_seed=0,
                save_checkpoints_steps=None,
                save_checkpoints_secs=None,
                save_summary_steps=0,
                log_step_count_steps=None,
                default_hooks=False,
            ),
        )
        config = self.classifier.bert_config
        self._batches = [
            ({"input_ids": b["input_ids"], "input_mask": b["attention_mask"]}, b["labels"])
            for b in batches(args.length, args.batch, args.steps, config.vocab_size)
        ]
        self.train()

    def train(self) -> float:
        began = time.perf_counter()
        self.classifier.train(lambda: self._batches)
        # The newest weights are asked for: steps may still be under way.
        self.classifier.get_variable_value("output_bias")
        return time.perf_counter() - began


class Theirs:
    """The Trainer of transformers."""

    def __init__(self, directory: str, args: argparse.Namespace) -> None:
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        torch.set_num_threads(args.threads)
        model = transformers.BertForSequenceClassification.from_pretrained(directory, num_labels=2)
        made = batches(args.length, args.batch, args.steps, model.config.vocab_size)
        rows = [
            {name: torch.as_tensor(array[row]).long() for name, array in one.items()}
            for one in made
            for row in range(args.batch)
        ]
        self._trainer_class, self._model, self._rows = transformers.Trainer, model, rows
        self._arguments = transformers.TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=args.batch,
            max_steps=args.steps,
            learning_rate=1e-5,
            weight_decay=0.01,
            lr_scheduler_type="constant",
            bf16=args.precision == "bfloat16",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        self.train()

    def train(self) -> float:
        trainer = self._trainer_class(model=self._model, args=self._arguments, train_dataset=self._rows)
        began = time.perf_counter()
        trainer.train()
        return time.perf_counter() - began


def worker(kind: str, directory: str, args: argparse.Namespace) -> None:
    side = (Ours if kind == "ours" else Theirs)(directory, args)
    reply({"ready": True})
    for _ in sys.stdin:
        seconds = side.train()
        reply({"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})


def reply(value: dict[str, Any]) -> None:
    os.write(REPLIES, (json.dumps(value) + "\n").encode())


class Side:
    """A process that trains when it is told to."""

    def __init__(self, python: str, kind: str, directory: str) -> None:
        read, write = os.pipe()
        command = [python, __file__, *sys.argv[1:], "--worker", kind, "--weights", directory, "--replies", str(write)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[write])
        os.close(write)
        self._replies = os.fdopen(read)
        self.answer()

    def answer(self) -> dict[str, Any]:
        line = self._replies.readline()
        if not line:
            raise SystemExit(f"one side ended with {self._process.wait()}")
        return json.loads(line)

    def train(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def pretrained(size: str, place: str) -> str:
    """A directory of random weights that both sides start from."""
    from estimator_canned_bert import BertConfig, encoder_shapes, save_pretrained

    config = BertConfig.of_size(size)
    shapes = encoder_shapes(config) | {"output_weights": (2, config.hidden_size), "output_bias": (2,)}
    rng = np.random.default_rng(0)
    values = {name: (0.02 * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}
    values |= {name: np.ones_like(value) for name, value in values.items() if name.endswith("gamma")}
    return save_pretrained(place, values, config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--torch-python", default=sys.executable, help="a Python with torch, transformers, accelerate")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--weights", help=argparse.SUPPRESS)
    parser.add_argument("--replies", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        global REPLIES
        REPLIES = args.replies
        worker(args.worker, args.weights, args)
        return
    probe = [args.torch_python, "-c", "import torch, transformers, accelerate"]
    if subprocess.run(probe, capture_output=True).returncode:
        print(f"bert: left out, {args.torch_python} has no torch, transformers and accelerate (--torch-python)")
        return
    compare(args)


def compare(args: argparse.Namespace) -> None:
    from _side_by_side import bootstrap_interval

    with tempfile.TemporaryDirectory() as place:
        directory = pretrained(args.size, place)
        sides = {
            "ours": Side(sys.executable, "ours", directory),
            "theirs": Side(args.torch_python, "theirs", directory),
        }
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
        for number in range(args.rounds):
            order = list(sides) if number % 2 else list(sides)[::-1]
            for name in order:
                found[name].append(sides[name].train())
        for side in sides.values():
            side.close()
    seconds = {name: np.array([one["seconds"] for one in runs]) for name, runs in found.items()}
    ratios = seconds["theirs"] / seconds["ours"]
    low, high = bootstrap_interval(ratios)
    result = {
        "size": args.size,
        "batch": args.batch,
        "length": args.length,
        "precision": args.precision,
        "ratio": float(np.median(ratios)),
        "interval": [low, high],
        "steps_per_second": {name: args.steps / float(np.median(one)) for name, one in seconds.items()},
        "peak_mb": {name: max(one["peak_mb"] for one in runs) for name, runs in found.items()},
        "rounds": args.rounds,
    }
    print(json.dumps(result, indent=1))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")


REPLIES = -1

if __name__ == "__main__":
    main()
