"""Changes each batch on the host before it goes to the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_core.errors import ArgumentTypeError, HookError
from estimator_core.hooks import Hook, Run


class FeedFnHook(Hook):
    """Sends every batch through `feed_fn(features, labels) -> (features, labels)`, as the input is drawn.

    It works on numpy arrays, may add, replace and drop features, and may see strings. Several hooks apply theirs in the
    order of the hooks. A transformation that belongs to the model, and to its exports, is a `HostTransform` instead.

    Args:
        feed_fn: must not change the arrays it is given; labels are None if there are none.

    Raises:
        ArgumentTypeError: `feed_fn` is not a function.
        HookError: in the run, when it returns something other than a pair.

    Example:
        >>> hook = FeedFnHook(lambda features, labels: ({**features, "x": features["x"] / 255.0}, labels))

    Source: `tf.compat.v1.train.FeedFnHook`, which feeds values to placeholders.
    """

    def __init__(self, feed_fn: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        if not callable(feed_fn):
            raise ArgumentTypeError(f"FeedFnHook: feed_fn must be a function, given: {type(feed_fn).__name__}")
        self._feed_fn = feed_fn

    def begin(self, run: Run) -> None:
        """Puts the function between the input and the step."""
        run.transform_batches(self._apply)

    def _apply(self, features: Any, labels: Any) -> tuple[Any, Any]:
        result: Any = self._feed_fn(features, labels)
        if not isinstance(result, tuple) or len(result) != 2:
            raise HookError(
                f"FeedFnHook: feed_fn must return (features, labels), got {type(result).__name__}. "
                "Return the labels as they are, None included, where they do not change."
            )
        return result
