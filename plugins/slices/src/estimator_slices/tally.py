"""The slices of one evaluation: their places in the table, their counts and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.metrics import HostMetric, Metric
from estimator_slices.fold import Keys, Table, empty, widened, without_each_group
from estimator_slices.jackknife import interval
from estimator_slices.keys import Crossing, Drawn, identity
from estimator_slices.rows import SliceRow

_FEWEST = 16


class _Kept(NamedTuple):
    """Metrics of whole arrays of one batch, and the slices of its rows."""

    metrics: Mapping[str, HostMetric]
    slots: np.ndarray[Any, Any]
    groups: np.ndarray[Any, Any]


class Tally:
    """Adds up batches, slice by slice. It grows with new slices.

    Args:
        wanted: the crossings.
        groups: the number of groups of examples. 1: no intervals.
        most: the largest number of slices.
        level: the confidence level of the intervals.
    """

    def __init__(self, wanted: Sequence[Crossing], *, groups: int, most: int, level: float) -> None:
        self._wanted, self._groups, self._most, self._level = wanted, groups, most, level
        self._places: dict[tuple[int, tuple[tuple[str, Any], ...]], int] = {(-1, ()): 0}
        self._counts: dict[int, int] = {}
        self._table: Table | None = None
        self._kept: list[_Kept] = []

    def add(
        self,
        fold: Callable[..., Any],
        batch_metrics: Callable[..., Any],
        batch: tuple[Any, Any, Any, Any],
        drawn: Drawn,
    ) -> None:
        """Adds a batch.

        Args:
            fold: the compiled function of `folding`.
            batch_metrics: the function of `Run.batch_metrics`.
            batch: the state, features, labels and weights.
            drawn: the keys of the batch.

        Raises:
            ArgumentError: there are more slices than `most`.
        """
        slots = self._slots(drawn)
        cells, counts = np.unique(slots[drawn.real], return_counts=True)
        for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
            self._counts[cell] = self._counts.get(cell, 0) + count
        room = _power_of_two(len(self._places))
        if self._table is None:
            self._table = empty(batch_metrics, room, self._groups, *batch)
        elif self._table.seen.shape[0] < room:
            self._table = widened(self._table, room)
        filled = np.full(_power_of_two(len(cells)), np.iinfo(np.int32).max, np.int32)
        filled[: len(cells)] = cells
        keys = Keys(np.where(drawn.real[:, None], slots, -1).astype(np.int32), drawn.groups, filled)
        self._table, kept = fold(self._table, *batch, keys)
        if kept:
            self._kept.append(_Kept(kept, slots, drawn.groups))

    def rows(self) -> list[SliceRow]:
        """Returns the result of each slice: first all examples, then the crossings in order, each by its values."""
        if self._table is None:
            return []
        everything, without = jax.device_get(without_each_group(self._table))
        seen = np.asarray(jax.device_get(self._table.seen))
        host = _merged([kept.metrics for kept in self._kept])
        slots = np.concatenate([kept.slots for kept in self._kept]) if self._kept else np.zeros((0, 1))
        groups = np.concatenate([kept.groups for kept in self._kept]) if self._kept else np.zeros(0)
        found: list[SliceRow] = []
        for (crossing, keys), place in sorted(self._places.items(), key=_in_order):
            if place not in self._counts:
                continue
            used = np.flatnonzero(seen[place]).tolist()
            metrics: dict[str, Any] = {}
            intervals: dict[str, tuple[float, float]] = {}
            for name in everything.metrics:
                value = _computed(everything.metrics[name], place)
                metrics[name] = _json(value)
                if np.ndim(value) == 0 and len(used) > 1:
                    others = [float(_computed(without.metrics[name], group, place)) for group in used]
                    _note(intervals, name, interval(float(value), others, self._level))
            inside = np.any(slots == place, axis=1)
            for name, metric in host.items():
                value = _of_rows(metric, inside)
                metrics[name] = _json(value)
                if np.ndim(value) == 0 and len(used) > 1:
                    others = [float(_of_rows(metric, inside & (groups != group))) for group in used]
                    _note(intervals, name, interval(float(value), others, self._level))
            names = self._wanted[crossing] if crossing >= 0 else ()
            found.append(
                SliceRow(
                    slice={name: value for name, (_, value) in zip(names, keys, strict=True)},
                    examples=self._counts[place],
                    metrics=dict(sorted(metrics.items())),
                    intervals=dict(sorted(intervals.items())),
                )
            )
        return found

    def _slots(self, drawn: Drawn) -> np.ndarray[Any, Any]:
        """Returns the places of each row in the table, [rows, crossings + 1]. New slices get a place."""
        columns = [np.zeros(len(drawn.real), np.int64)]
        for crossing, (values, codes) in enumerate(zip(drawn.values, drawn.codes, strict=True)):
            keys = [(crossing, tuple(map(identity, value))) for value in values]
            places = [self._places.setdefault(key, len(self._places)) for key in keys]
            columns.append(np.array(places, np.int64)[codes])
        if len(self._places) - 1 > self._most:
            counts = [sum(1 for at, _ in self._places if at == c) for c in range(len(self._wanted))]
            told = ", ".join(f"{'x'.join(names)}: {n}" for names, n in zip(self._wanted, counts, strict=True))
            raise ArgumentError(
                f"slices: the evaluation has more than {self._most} slices ({told}). Slice by features with few "
                "values, bin the others, or set SliceHook(most=...)."
            )
        return np.stack(columns, axis=1)


def _in_order(item: tuple[tuple[int, tuple[tuple[str, Any], ...]], int]) -> Any:
    (crossing, keys), _ = item
    return crossing, [(each is None, isinstance(each, str), 0 if each is None else each, kind) for kind, each in keys]


def _power_of_two(least: int) -> int:
    return max(_FEWEST, 1 << (least - 1).bit_length())


def _computed(metric: Metric, *at: int) -> Any:
    one: Metric = jax.tree.map(lambda leaf: leaf[at], metric)
    return one.compute()


def _merged(metrics: Sequence[Mapping[str, HostMetric]]) -> dict[str, HostMetric]:
    together = dict(metrics[0]) if metrics else {}
    for each in metrics[1:]:
        together = {name: metric.merge(each[name]) for name, metric in together.items()}
    return together


def _of_rows(metric: HostMetric, inside: np.ndarray[Any, Any]) -> Any:
    """Returns the metric of some rows of all batches."""
    chunks: list[Any] = []
    start = 0
    for chunk in metric.chunks:
        rows = len(next(iter(chunk.arrays.values())))
        mask = inside[start : start + rows]
        chunks.append(chunk._replace(mask=mask if chunk.mask is None else mask & np.asarray(chunk.mask)))
        start += rows
    return type(metric)(chunks=tuple(chunks), function=metric.function).compute()


def _json(value: Any) -> Any:
    return value if isinstance(value, float) else np.asarray(value).tolist()


def _note(intervals: dict[str, tuple[float, float]], name: str, ends: tuple[float, float] | None) -> None:
    if ends is not None:
        intervals[name] = ends
