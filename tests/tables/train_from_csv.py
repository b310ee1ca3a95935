"""Trains a wide and deep model on shuffled CSV files: `train_from_csv.py PATTERN MODEL_DIR KILL_AT` (0: never)."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import optax

import estimator_core as ec
from estimator_canned_tabular import (
    DNNLinearCombinedClassifier,
    categorical_column_with_vocabulary_list,
    embedding_column,
    numeric_column,
)
from estimator_inputs import csv_input_fn

STEPS, KINDS = 48, ["ape", "bee", "cat", "dog"]


def classifier(model_dir: str) -> Any:
    """A model of numbers and a word. One value of the word is not in the vocabulary, and dropout is active."""
    kind = categorical_column_with_vocabulary_list("kind", KINDS, num_oov_buckets=1)
    return DNNLinearCombinedClassifier(
        linear_feature_columns=[kind],
        dnn_feature_columns=[numeric_column("size"), numeric_column("weight"), embedding_column(kind, 3)],
        dnn_hidden_units=[16],
        dnn_optimizer=lambda: optax.adagrad(0.05),
        dnn_dropout=0.2,
        config=ec.RunConfig(model_dir=model_dir, tf_random_seed=1, save_checkpoints_steps=7),
    )


def train_input(pattern: str) -> Any:
    """Reads three files in turn, with a new shuffle in each epoch."""
    return csv_input_fn(
        pattern,
        16,
        shuffle=True,
        label_name="label",
        shuffle_buffer_size=60,
        num_epochs=None,
        reader_num_threads=2,
    )


class Dies(ec.Hook):
    """Kills the process after a step."""

    def __init__(self, at: int) -> None:
        self._at = at

    def next_step(self, step: int) -> int | None:
        return self._at if step < self._at else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def main(pattern: str, model_dir: str, kill_at: str) -> None:
    """Continues the training until the last step or the kill."""
    hooks = [Dies(int(kill_at))] if int(kill_at) else []
    classifier(model_dir).train(train_input(pattern), max_steps=STEPS, hooks=hooks)


if __name__ == "__main__":
    main(*sys.argv[1:])
