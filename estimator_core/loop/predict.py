"""The prediction loop: device batches in, host batches or single examples out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from estimator_core.errors import ArgumentError, ModelFnError
from estimator_core.loop.hook_runner import HookRunner
from estimator_core.loop.outputs import LazyOutputs
from estimator_core.loop.run import LoopRun

_AHEAD = 2


def predict_batches(
    run: LoopRun,
    runner: HookRunner,
    source: Iterator[Any],
    predict: Callable[[Any], Any],
    transforms: Callable[[], Sequence[Any]],
) -> Iterator[Any]:
    """Predictions of each batch on the host, without padded rows; the device works up to two batches ahead."""
    waiting: deque[tuple[Any, Any]] = deque()
    for batch in source:
        if runner.watches_clock:
            runner.look_at_clock()
        due = runner.wake <= run.step + 1
        if due:
            runner.before(run.step + 1)
        predictions = predict(batch)
        run.batch, run.batch_size = batch, batch.size
        run.step += 1
        if due or runner.listens:
            named = predictions if isinstance(predictions, Mapping) else {"predictions": predictions}
            outputs = LazyOutputs(named, steps=range(run.step, run.step + 1), stacked=False)
            if runner.listens:
                runner.collect(outputs)
            if due:
                runner.after(outputs)
        waiting.append((batch, predictions))
        if len(waiting) > _AHEAD:
            yield _finish(*waiting.popleft(), transforms())
        if run.stop_reason is not None:
            break
    while waiting:
        yield _finish(*waiting.popleft(), transforms())


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


def _finish(batch: Any, predictions: Any, transforms: Sequence[Any]) -> Any:
    on_host = jax.device_get(predictions)
    if batch.weights is not None:
        real = np.asarray(batch.weights) > 0
        on_host = jax.tree.map(
            lambda leaf: leaf[real] if np.ndim(leaf) and leaf.shape[0] == real.shape[0] else leaf, on_host
        )
    for transform in transforms:
        on_host = transform.apply(on_host)
    return on_host
