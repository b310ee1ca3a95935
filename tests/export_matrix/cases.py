"""What the matrix of exports is made of: models that a user may write, each with the batch that it is tried on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import estimator_core as ec

MODES = ("infer", "eval", "train")
FORMATS = ("stablehlo", "saved_model", "onnx")
ROWS = 8  # one of the sizes that a model is written for which has no program for any


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A trained model and one batch of it.

    Attributes:
        estimator: the model after a step or two.
        features: arrays by name, as a client sends them.
        labels: arrays by name, one array, or None where the model takes none.
        receiver: of requests; None: the features themselves.
        prepared: the features of `eval` and `train`, where they are others.
    """

    estimator: Any
    features: Mapping[str, np.ndarray]
    labels: Any = None
    receiver: Callable[[], Any] | None = None
    prepared: Mapping[str, np.ndarray] | None = None

    def receivers(self) -> dict[str, Callable[[], Any]]:
        """What each mode takes."""
        raw = ec.export.build_raw_serving_input_receiver_fn(features_of(self.features))
        return {"infer": self.receiver or raw, "eval": self._supervised, "train": self._supervised}

    def _supervised(self) -> Any:
        if self.labels is None:
            return ec.export.SupervisedInputReceiver(features_of(self.prepared or self.features))
        return ec.export.build_supervised_input_receiver_fn_from_input_fn(self.batch)()

    def batch(self) -> list[Any]:
        """One batch as an input_fn gives it."""
        return [(dict(self.prepared or self.features), self.labels)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of the page.

    Attributes:
        group: the table it stands in.
        row: what stands in the first column, two names.
        make: trains it.
        cut: the format and the mode in which the ordinary CI tries it.
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
    """A format and a mode: nine cases in a row have all of them."""
    return FORMATS[place % 3], MODES[place // 3 % 3]


def features_of(features: Mapping[str, np.ndarray]) -> dict[str, ec.export.Feature]:
    """What a client sends, for any batch size."""
    return {
        name: ec.export.Feature((None, *value.shape[1:]), "string" if value.dtype.kind in "OSU" else str(value.dtype))
        for name, value in features.items()
    }


def config() -> ec.RunConfig:
    """The same first values in every run, and nothing written that nobody reads."""
    directory = tempfile.mkdtemp(prefix="export-matrix-")
    return ec.RunConfig(model_dir=directory, tf_random_seed=1, default_hooks=False, save_summary_steps=0)


def trained(estimator: Any, features: Any, labels: Any, steps: int = 2, **more: Any) -> Sample:
    """The sample of an estimator that has seen its batch."""
    batch = features if labels is None else (features, labels)
    return Sample(estimator=estimator.train(lambda: [batch] * steps), features=features, labels=labels, **more)
