"""The contents of the matrix of exports: models that a user may write, each with a batch for the test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import estimator_core as ec

MODES = ("infer", "eval", "train")
FORMATS = ("stablehlo", "saved_model", "onnx")
ROWS = 8  # one of the fixed batch sizes for which a model is exported if it has no program for any size


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A trained model and one batch of it.

    Attributes:
        estimator: the model after a step or two.
        features: arrays by name, as a client sends them.
        labels: arrays by name, one array, or None if the model takes no labels.
        receiver: the receiver of requests. None stands for a receiver of the features themselves.
        prepared: the features of `eval` and `train`, if they differ.
    """

    estimator: Any
    features: Mapping[str, np.ndarray]
    labels: Any = None
    receiver: Callable[[], Any] | None = None
    prepared: Mapping[str, np.ndarray] | None = None

    def receivers(self) -> dict[str, Callable[[], Any]]:
        """Returns the receiver of each mode."""
        raw = ec.export.build_raw_serving_input_receiver_fn(features_of(self.features))
        return {"infer": self.receiver or raw, "eval": self._supervised, "train": self._supervised}

    def _supervised(self) -> Any:
        if self.labels is None:
            return ec.export.SupervisedInputReceiver(features_of(self.prepared or self.features))
        return ec.export.build_supervised_input_receiver_fn_from_input_fn(self.batch)()

    def batch(self) -> list[Any]:
        """Returns one batch, in the form that an input_fn returns."""
        return [(dict(self.prepared or self.features), self.labels)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of the page.

    Attributes:
        group: the table of the row.
        row: the two names in the first columns.
        make: trains the model, and returns its sample.
        cut: the format and the mode that the ordinary CI tests.
    """

    group: str
    row: tuple[str, str]
    make: Callable[[], Sample]
    cut: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """A name for files."""
        return "-".join((self.group, *self.row)).replace(" ", "_").replace(",", "")


def in_turn(place: int) -> tuple[str, str]:
    """Returns a format and a mode. Nine successive places have all combinations."""
    return FORMATS[place % 3], MODES[place // 3 % 3]


def features_of(features: Mapping[str, np.ndarray]) -> dict[str, ec.export.Feature]:
    """Returns the features that a client sends, for any batch size."""
    return {
        name: ec.export.Feature((None, *value.shape[1:]), "string" if value.dtype.kind in "OSU" else str(value.dtype))
        for name, value in features.items()
    }


def config() -> ec.RunConfig:
    """Returns a config with the same initial values in every run, and without files that nobody reads."""
    directory = tempfile.mkdtemp(prefix="export-matrix-")
    return ec.RunConfig(model_dir=directory, tf_random_seed=1, default_hooks=False, save_summary_steps=0)


def trained(estimator: Any, features: Any, labels: Any, steps: int = 2, **more: Any) -> Sample:
    """Returns the sample of an estimator that was trained on its batch."""
    batch = features if labels is None else (features, labels)
    return Sample(estimator=estimator.train(lambda: [batch] * steps), features=features, labels=labels, **more)
