"""Changes each batch on the host before it is sent to the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_core.errors import ArgumentTypeError, HookError
from estimator_core.hooks import Hook, Run


class FeedFnHook(Hook):
    """Replaces every batch by `feed_fn(features, labels) -> (features, labels)` when it is drawn.

    The function receives numpy arrays, including strings. It may add, replace and drop features. Several such hooks
    apply their functions in the order of the hooks. Use a `HostTransform` instead for a transformation that belongs to
    the model and its exports.

    Args:
        feed_fn: the function. It must not change its arguments. Labels are None if there are no labels.

    Raises:
        ArgumentTypeError: `feed_fn` is not a function.
        HookError: `feed_fn` does not return a pair; raised in the run.

    Example:
        >>> hook = FeedFnHook(lambda features, labels: ({**features, "x": features["x"] / 255.0}, labels))

    Source: `tf.compat.v1.train.FeedFnHook`, which feeds values to placeholders.
    """

    def __init__(self, feed_fn: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        if not callable(feed_fn):
            raise ArgumentTypeError(f"FeedFnHook: feed_fn must be a function, given: {type(feed_fn).__name__}")
        self._feed_fn = feed_fn

    def begin(self, run: Run) -> None:
        """Inserts the function between the input and the step."""
        run.transform_batches(self._apply)

    def _apply(self, features: Any, labels: Any) -> tuple[Any, Any]:
        result: Any = self._feed_fn(features, labels)
        if not isinstance(result, tuple) or len(result) != 2:
            raise HookError(
                f"FeedFnHook: feed_fn must return (features, labels), got {type(result).__name__}. Return unchanged "
                "labels as they are, including None."
            )
        return result
