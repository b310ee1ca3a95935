"""`keras_input_fn`: the batches of `keras.Model.fit`, `(x, y, sample_weight)`, as an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError


def keras_input_fn(source: Any, *, weight_column: str = "sample_weight") -> Callable[[], Iterator[Any]]:
    """Returns an input_fn over batches `(x, y, sample_weight)`, `(x, y)`, `(x,)` or `x`, as Keras accepts them.

    A list counts as a tuple, since a torch `DataLoader` yields lists.

    The weights become a feature. Pass its name to the estimator or head as `weight_column`. A position is reached by
    drawing and dropping batches.

    Args:
        source: an iterable of batches, a `keras.utils.PyDataset`, or a function that returns one of them.
        weight_column: the name of the feature for the weights.

    Raises:
        ArgumentTypeError: the source is neither callable nor iterable.
        InputError: while reading: a batch has more than three parts, or a feature has the name of the weights.

    Example:
        >>> import numpy as np
        >>> batches = [({"age": np.array([20.0, 30.0])}, np.array([0, 1]), np.array([1.0, 0.5]))]
        >>> [(sorted(features), labels.tolist()) for features, labels in keras_input_fn(batches)()]
        [(['age', 'sample_weight'], [0, 1])]

    Source: `keras.Model.fit`.
    """
    if not weight_column or not isinstance(weight_column, str):
        raise ArgumentError(f"weight_column must be a name, given: {weight_column!r}.")
    if not callable(source) and not hasattr(source, "__iter__") and not hasattr(source, "__getitem__"):
        raise ArgumentTypeError(f"keras_input_fn needs batches or a function that makes them, given: {source!r:.200}.")

    def input_fn() -> Iterator[Any]:
        made = cast(Any, source if _is_data(source) else source())
        numbered = hasattr(made, "__getitem__") and hasattr(made, "__len__") and not isinstance(made, (list, tuple))
        batches = (made[number] for number in range(len(made))) if numbered else iter(made)
        return (_batch(batch, weight_column) for batch in batches)

    return input_fn


def _is_data(source: Any) -> bool:
    return not isinstance(source, type) and (hasattr(source, "__iter__") or hasattr(source, "__getitem__"))


def _batch(batch: Any, weight_column: str) -> Any:
    if not isinstance(batch, (tuple, list)):
        return batch
    parts: tuple[Any, ...] = (*batch,)
    if not 1 <= len(parts) <= 3:
        raise InputError(f"A batch has {len(parts)} parts, but Keras reads x, (x, y) or (x, y, sample_weight).")
    x, y, weights = (*parts, None, None)[:3]
    if weights is None:
        return x if y is None else (x, y)
    features: dict[str, Any] = dict(x) if isinstance(x, Mapping) else {"x": x}
    if weight_column in features:
        raise InputError(
            f"The features already have {weight_column!r}, and the batch has weights too: name another weight_column."
        )
    return {**features, weight_column: weights}, y
