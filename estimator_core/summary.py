"""Summaries of a model_fn: `ec.summary.scalar`, `histogram`, `image` and `text`."""

from typing import TYPE_CHECKING

from estimator_core import _moved
from estimator_core._model.tensors import histogram, image, scalar, text

__all__ = ["histogram", "image", "scalar", "text"]

if not TYPE_CHECKING:
    __getattr__ = _moved.names_of("summary")
