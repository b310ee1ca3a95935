"""Precision, recall and F1 of labelled spans, as in named-entity recognition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.metrics import TotalsMetric, padding_mask, total, total_value
from estimator_heads.metrics.buckets import divide

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike

SpanStatistic = Literal["precision", "recall", "f1"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class SpanScore(TotalsMetric):
    """The counts of correct, predicted and actual spans.

    Args:
        spans: the counts [2, 3].
        statistic: the ratio that `compute` returns: "precision", "recall" or "f1".
    """

    spans: Array
    statistic: SpanStatistic = field(metadata={"static": True})

    def compute(self) -> float:
        """Returns the ratio, or 0.0 if it is 0 / 0."""
        right, predicted, actual = total_value(self.spans)
        if self.statistic == "precision":
            return float(divide(right, predicted))
        if self.statistic == "recall":
            return float(divide(right, actual))
        return float(divide(2 * right, predicted + actual))


def span_f1(
    labels: ArrayLike,
    predictions: ArrayLike,
    names: Sequence[str],
    *,
    valid: ArrayLike | None = None,
    statistic: SpanStatistic = "f1",
) -> SpanScore:
    """Returns the F1 of whole spans. A span is correct only if its beginning, end and type are correct.

    Args:
        labels: integer label ids [batch, time].
        predictions: integer label ids of the same shape.
        names: the name of each id in the BIO scheme: "O", "B-<type>", "I-<type>".
        valid: bool [batch, time], whether a step counts. None: all steps. Other steps are removed.
        statistic: "precision", "recall" or "f1", over the spans of all types together.

    Raises:
        ArgumentError: a name does not follow the scheme, or shapes do not match.

    Example:
        >>> import numpy as np
        >>> names = ["O", "B-PER", "I-PER"]
        >>> span_f1(np.array([[1, 2, 0, 1]]), np.array([[1, 2, 0, 0]]), names).compute()
        0.6666666666666666

    Source: `conlleval` of CoNLL-2000: an I- tag that does not continue a span of its type begins a new one.
    """
    scheme = _scheme(names)
    expected, predicted = jnp.asarray(labels), jnp.asarray(predictions)
    steps = jnp.ones(expected.shape, bool) if valid is None else jnp.asarray(valid, bool)
    if expected.ndim != 2 or expected.shape != predicted.shape or expected.shape != steps.shape:
        raise ArgumentError(
            f"span_f1: labels, predictions and valid need one shape [batch, time]; got {expected.shape}, "
            f"{predicted.shape}, {steps.shape}."
        )
    mask = padding_mask(expected.shape, metric="span_f1")
    if mask is not None:
        steps = steps & mask
    # The steps that count come first, in their order. The other steps become "O" after them.
    order = jnp.argsort(~steps, axis=-1, stable=True)
    actual = _spans(_in_order(expected, order, steps, scheme.outside), scheme)
    found = _spans(_in_order(predicted, order, steps, scheme.outside), scheme)
    right = actual.starts & found.starts & (actual.ends == found.ends) & (actual.kinds == found.kinds)
    counts = total(jnp.stack([right, found.starts, actual.starts], axis=-1), axis=(0, 1))
    return SpanScore(spans=counts, statistic=statistic)


class _Scheme(NamedTuple):
    kinds: np.ndarray[Any, Any]  # by id: the type of its span, 0 for "O"
    inside: np.ndarray[Any, Any]  # by id: whether it may continue a span
    outside: int  # an id that is "O": one past the last name


class _Spans(NamedTuple):
    starts: Array  # bool, whether a span begins here
    ends: Array  # the step after the last one of the span that begins here
    kinds: Array


def _scheme(names: Sequence[str]) -> _Scheme:
    for name in names:
        if name != "O" and name[:2] not in ("B-", "I-"):
            raise ArgumentError(f'span_f1: label names must be "O", "B-<type>" or "I-<type>". Given: {name!r}.')
    types = sorted({name[2:] for name in names if name != "O"})
    padded = [*names, "O"]
    kinds = np.array([0 if name == "O" else 1 + types.index(name[2:]) for name in padded], np.int32)
    return _Scheme(kinds, np.array([name[:2] == "I-" for name in padded]), len(names))


def _in_order(ids: Array, order: Array, steps: Array, outside: int) -> Array:
    return jnp.take_along_axis(jnp.where(steps, ids, outside), order, axis=-1)


def _spans(ids: Array, scheme: _Scheme) -> _Spans:
    kinds = jnp.asarray(scheme.kinds)[ids]
    before = jnp.pad(kinds[:, :-1], ((0, 0), (1, 0)))
    continues = jnp.asarray(scheme.inside)[ids] & (kinds == before) & (kinds > 0)
    length = ids.shape[-1]
    breaks = jnp.where(continues, length, jnp.arange(length))
    next_break = jax.lax.cummin(breaks, axis=1, reverse=True)
    ends = jnp.pad(next_break[:, 1:], ((0, 0), (0, 1)), constant_values=length)
    return _Spans((kinds > 0) & ~continues, ends, kinds)
