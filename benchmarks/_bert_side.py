"""One side of `bert.py`, in a process of its own: the Estimator, or the Trainer of transformers.

Started by `bert.py` with the interpreter of the side; it imports nothing that the other one's environment has alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from typing import Any

import numpy as np


def options() -> argparse.ArgumentParser:
    """What is trained, and how the process speaks with the one that started it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", choices=["ours", "theirs"], required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--replies", type=int, required=True)
    for name in ("batch", "length", "steps", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--precision", required=True)
    return parser


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


def main() -> None:
    """Answers that it is ready, then trains for each line it reads, and answers how long that took."""
    args = options().parse_args()

    def reply(value: dict[str, Any]) -> None:
        os.write(args.replies, (json.dumps(value) + "\n").encode())

    side = (Ours if args.side == "ours" else Theirs)(args.weights, args)
    reply({"ready": True})
    for _ in sys.stdin:
        seconds = side.train()
        reply({"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})


if __name__ == "__main__":
    main()
