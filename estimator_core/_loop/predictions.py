"""Predictions: their computation on the device, and their conversion for the caller."""

from __future__ import annotations

import atexit
import inspect
import logging
import weakref
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from estimator_core._backends.device_get import fetched
from estimator_core._loop.dispatch import Dispatch, single
from estimator_core.errors import ArgumentError, ModelFnError

_log = logging.getLogger("estimator_core")
_UNFINISHED: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()


class Predictions:
    """Computes predictions of batches, one by one or together, see `Ways`.

    Args:
        compute: the function that the device computes for one dispatch.
        has_effects: a function that returns whether predicting calls back to the host.
        first: the predictions of the first batch, if they are already computed.
        keys: the requested predictions. None: all.
    """

    def __init__(
        self,
        compute: Callable[[Dispatch], Any],
        has_effects: Callable[[Dispatch], bool],
        first: Any = None,
        keys: Sequence[Hashable] | None = None,
    ) -> None:
        self._compute, self.has_effects, self._first, self._keys = compute, has_effects, first, keys

    def predict(self, dispatch: Dispatch) -> Any:
        """Returns the predictions of a dispatch, on the device."""
        first, self._first = self._first, None
        predictions = self._compute(dispatch) if first is None else first
        return predictions if self._keys is None else {name: predictions[name] for name in self._keys}

    def one_by_one(self, batches: list[Any]) -> Any:
        """Returns the predictions of batches, stacked."""
        computed = [jax.device_get(self.predict(single(batch))) for batch in batches]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *computed)

    def together(self, dispatch: Dispatch) -> Any:
        """Returns the predictions of a dispatch of several batches."""
        return self.predict(dispatch)


def single_examples(batch: Any, rows: int) -> Iterable[Any]:
    """Yields one prediction per example.

    Args:
        batch: the predictions of one batch.
        rows: the number of examples in the batch.

    Raises:
        ModelFnError: there are no predictions, their leading sizes differ, or these differ from the number of examples.
    """
    outputs = batch if isinstance(batch, Mapping) else {"predictions": batch}
    if not outputs:
        raise ModelFnError(
            "Missing predictions. model_fn returned an empty dict of predictions. Name one: predictions={'y': y}."
        )
    sizes = {name: np.shape(value)[0] if np.ndim(value) else None for name, value in outputs.items()}
    leave_out = "Leave such predictions out with predict_keys, or use" if outputs is batch else "Use"
    cure = f"{leave_out} yield_single_examples=False."
    for name, size in sizes.items():
        if size is None or size != next(iter(sizes.values())):
            raise ModelFnError(
                f"Batch length of predictions should be same. {name} has different batch length than others: {sizes}. "
                + cure
            )
        if size != rows:
            raise ModelFnError(f"{name} has {size} predictions for a batch of {rows} examples: {sizes}. {cure}")
    if outputs is not batch:
        return batch
    names = list(outputs)
    return [dict(zip(names, row, strict=True)) for row in zip(*outputs.values(), strict=True)]


def check_predict_keys(predict_keys: Sequence[Hashable] | None, predictions: Any) -> tuple[Hashable, ...] | None:
    """Returns the keys to compute; None for all.

    Raises:
        ArgumentError: a key does not exist, or the predictions are not a dict.
    """
    if not predict_keys:
        return None
    if not isinstance(predictions, Mapping):
        raise ArgumentError("predict_keys argument is not valid in case of non-dict predictions.")
    unknown = [key for key in predict_keys if key not in predictions]
    if unknown:
        raise ArgumentError(
            f"Expected to run at least one output from {list(predictions)}, provided {list(predict_keys)}: {unknown} "
            "do not exist."
        )
    return tuple(dict.fromkeys(predict_keys))


def on_host(dispatch: Dispatch, predictions: Any, transforms: Sequence[Any], *, single: bool) -> Iterator[Any]:
    """Yields the predictions of each batch of a dispatch, or of each example, without padded rows, after the
    transforms.
    """
    values = fetched(predictions)
    weights = None if dispatch.weights is None else np.asarray(dispatch.weights)
    leaves, structure = jax.tree.flatten(values)
    for index in range(dispatch.steps):
        place = (index, ...) if dispatch.steps > 1 else ...
        of_batch = None if weights is None else weights[place]
        batch = _real_rows(structure.unflatten([leaf[place] for leaf in leaves]), of_batch, transforms)
        if single:
            yield from single_examples(batch, dispatch.last.size if of_batch is None else int((of_batch > 0).sum()))
        else:
            yield batch


def _real_rows(on_host: Any, weights: Any, transforms: Sequence[Any]) -> Any:
    """Returns the rows without padding, after the transforms."""
    if weights is not None:
        real = np.asarray(weights) > 0
        on_host = jax.tree.map(
            lambda leaf: leaf[real] if np.ndim(leaf) and leaf.shape[0] == real.shape[0] else leaf, on_host
        )
    for transform in transforms:
        on_host = transform.apply(on_host)
    return on_host


def ended_at_exit(predictions: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """Returns the same generator.

    If it is unfinished when the program ends, it is closed while modules can still be used.
    """
    _UNFINISHED.add(predictions)
    return predictions


@atexit.register
def _end_all() -> None:
    for predictions in list(_UNFINISHED):
        try:
            if inspect.getgeneratorstate(predictions) != inspect.GEN_RUNNING:
                predictions.close()
        except Exception:  # the others end all the same
            _log.exception("Unfinished predictions could not be closed when the program ended.")
