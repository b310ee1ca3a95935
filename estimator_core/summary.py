"""Summaries of a model_fn: `ec.summary.scalar`, `histogram`, `image` and `text`."""

from estimator_core._model.tensors import histogram, image, scalar, text

__all__ = ["histogram", "image", "scalar", "text"]
