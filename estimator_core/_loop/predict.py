"""The prediction loop: device batches in, host batches or single examples out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.dispatch import single as one
from estimator_core._loop.groups import Groups
from estimator_core._loop.hook_runner import HookRunner
from estimator_core._loop.outputs import LazyOutputs
from estimator_core._loop.run import LoopRun
from estimator_core.errors import ArgumentError, ModelFnError

_AHEAD = 2


def predict_batches(
    run: LoopRun,
    runner: HookRunner,
    source: Groups,
    predict: Callable[[Dispatch], Any],
    transforms: Callable[[], Sequence[Any]],
    has_effects: Callable[[Dispatch], bool],
) -> Iterator[Any]:
    """Predictions of each batch on the host, without padded rows; the device works up to two dispatches ahead.

    Args:
        run: what the hooks see.
        runner: calls the hooks.
        source: gives the batches, several at a time where no hook wants each by itself.
        predict: what the device computes of one dispatch.
        transforms: gives what is applied on the host.
        has_effects: whether predicting calls back to the host, so that nothing may be computed twice.
    """
    waiting: deque[tuple[Dispatch, Any]] = deque()

    def single(batches: list[Any]) -> Any:
        return jax.tree.map(lambda *leaves: np.stack(leaves), *[jax.device_get(predict(one(b))) for b in batches])

    def given(dispatch: Dispatch, predictions: Any) -> Iterator[Any]:
        with source.away():
            yield from _finish(dispatch, predictions, transforms())

    while True:
        alone = runner.listens
        try:
            dispatch = source.draw(1 if alone else runner.wake - 1 - run.step)
        except Exception:
            for before in waiting:  # nothing that could be predicted is lost with a broken row behind it
                yield from given(*before)
            raise
        if dispatch is None:
            break
        if runner.watches_clock:
            runner.look_at_clock()
        upto = run.step + dispatch.steps
        due = dispatch.steps == 1 and runner.wake <= upto
        if due:
            runner.before(upto)
        predictions = predict(dispatch)
        run.batch, run.batch_size = dispatch.last, dispatch.last.size
        run.step = upto
        if due or alone:
            named = predictions if isinstance(predictions, Mapping) else {"predictions": predictions}
            outputs = LazyOutputs(named, steps=range(upto, upto + 1), stacked=False)
            if alone:
                runner.collect(outputs)
            if due:
                runner.after(outputs)
        waiting.append((dispatch, predictions))
        if len(waiting) > _AHEAD:
            yield from given(*waiting.popleft())
        if run.stop_reason is not None:
            break
        if not alone and source.due(dispatch.last) and not has_effects(dispatch):
            source.try_out(runner.wake - 1 - run.step, single, predict)
    while waiting:
        yield from given(*waiting.popleft())


def single_examples(batches: Iterator[Any]) -> Iterator[Any]:
    """One prediction an example.

    Raises:
        ModelFnError: when predictions differ in their leading sizes.
    """
    for batch in batches:
        if not isinstance(batch, Mapping):
            yield from batch
            continue
        names = list(batch)
        sizes = {name: np.shape(batch[name])[0] if np.ndim(batch[name]) else None for name in names}
        first = sizes[names[0]]
        for name in names:
            if sizes[name] is None or sizes[name] != first:
                raise ModelFnError(
                    f"Batch length of predictions should be same. {name} has different batch length than others: "
                    f"{sizes}. Leave such predictions out with predict_keys, or use yield_single_examples=False."
                )
        columns = [batch[name] for name in names]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def check_predict_keys(predict_keys: Sequence[str] | None, predictions: Any) -> tuple[str, ...] | None:
    """The keys to compute, None for all.

    Raises:
        ArgumentError: for keys that do not exist, or keys of predictions that are no dict.
    """
    if predict_keys is None:
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


def _finish(dispatch: Dispatch, predictions: Any, transforms: Sequence[Any]) -> Iterator[Any]:
    fetched = jax.device_get(predictions)
    if dispatch.steps == 1:
        yield _real_rows(fetched, dispatch.weights, transforms)
        return
    weights = None if dispatch.weights is None else np.asarray(dispatch.weights)
    leaves, structure = jax.tree.flatten(fetched)
    for index in range(dispatch.steps):
        batch = structure.unflatten([leaf[index, ...] for leaf in leaves])
        yield _real_rows(batch, None if weights is None else weights[index], transforms)


def _real_rows(on_host: Any, weights: Any, transforms: Sequence[Any]) -> Any:
    """What is left without padding, after the transforms."""
    if weights is not None:
        real = np.asarray(weights) > 0
        on_host = jax.tree.map(
            lambda leaf: leaf[real] if np.ndim(leaf) and leaf.shape[0] == real.shape[0] else leaf, on_host
        )
    for transform in transforms:
        on_host = transform.apply(on_host)
    return on_host
