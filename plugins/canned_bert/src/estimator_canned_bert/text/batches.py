"""Batches of encoded examples: grouped by length, padded to a few shapes, readable from any position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import estimator_core as ec
from estimator_canned_bert.text.encoded import EncodedExamples
from estimator_canned_bert.text.packing import LOOKED_AT, packed_features, row_shapes
from estimator_core.errors import ArgumentError

IS_REAL_EXAMPLE = "is_real_example"


class PlannedBatch(NamedTuple):
    """One batch that has not been read yet.

    Attributes:
        length: the number of tokens to which sequences are padded.
        rows: the numbers of the examples.
    """

    length: int
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """The division of examples into batches.

    Args:
        batch_size: the rows of every batch over all processes. The last batch is padded, and the padding is marked.
        buckets: the lengths of sequences, ascending. An example is put into the first bucket that is long enough.
        seed: the seed of the order; None: the order of the file.
        num_epochs: the number of passes; None: no end.
        pack: whether to put several sentences into a row. An integer is the number of rows. The examples of a batch
            stay the same.

    Raises:
        ArgumentError: packing and buckets are both set, or there is less than one row.
    """

    batch_size: int
    buckets: tuple[int, ...]
    seed: int | None
    num_epochs: int | None
    pack: bool | int = False

    def __post_init__(self) -> None:
        if self.pack is False:
            return
        if len(self.buckets) > 1:
            raise ArgumentError(
                "pack and buckets exclude each other: packed rows have one length. Leave one of them out."
            )
        if self.pack < 1:
            raise ArgumentError(f"pack should be True, or a number of rows of at least 1, given: {self.pack!r}.")

    def epoch(self, lengths: np.ndarray, epoch: int) -> list[PlannedBatch]:
        """Returns the batches of one epoch. They contain each example once, and do not depend on earlier epochs.

        A bucket yields a batch when it is full. The remaining examples of all buckets are combined at the end, the
        shorter first.
        """
        order = np.arange(len(lengths))
        if self.seed is not None:
            order = np.random.default_rng((self.seed, epoch)).permutation(len(lengths))
        bucket = np.searchsorted(self.buckets, lengths[order])
        planned: list[tuple[int, PlannedBatch]] = []
        rest: list[np.ndarray] = []
        for index, length in enumerate(self.buckets):
            places = np.flatnonzero(bucket == index)
            full = len(places) // self.batch_size * self.batch_size
            for chunk in places[:full].reshape(-1, self.batch_size):
                planned.append((int(chunk[-1]), PlannedBatch(length, order[chunk])))
            rest.append(places[full:])
        left = np.concatenate(rest)
        if len(self.buckets) == 1 or self.seed is None:
            left = np.sort(left)
        for start in range(0, len(left), self.batch_size):
            chunk = left[start : start + self.batch_size]
            length = self.buckets[int(bucket[chunk].max())]
            planned.append((len(order) + start, PlannedBatch(length, order[chunk])))
        return [batch for _, batch in sorted(planned, key=lambda item: item[0])]


class TextInput:
    """An input_fn over encoded examples, made by `Split.input_fn`.

    Args:
        examples: the examples to read.
        plan: the division into batches.
        files: the files from which the examples were made, for the records of runs.
    """

    def __init__(self, examples: EncodedExamples, plan: BatchPlan, files: Sequence[Path] = ()) -> None:
        self.files = tuple(files)
        if plan.batch_size < 1:
            raise ArgumentError(f"batch_size must be at least 1, given: {plan.batch_size}.")
        self._examples = examples
        self._plan = plan

    def __call__(self, *, input_context: Any = None) -> TextBatches:
        """Returns new batches of all processes together. Each process keeps its own rows."""
        context = input_context or ec.inputs.InputContext()
        plan = replace(self._plan, batch_size=self._plan.batch_size * context.num_input_pipelines)
        return TextBatches(self._examples, plan)


class TextBatches(Iterator[Any]):
    """Batches that can start at any position."""

    def __init__(self, examples: EncodedExamples, plan: BatchPlan) -> None:
        self.input_options = ec.inputs.InputOptions(
            fresh_arrays=True,
            batch_size=plan.batch_size,
            endless=plan.num_epochs is None,
            varying_shapes=len(plan.buckets) > 1 or plan.pack is not False,
            whole=True,
        )
        self.fingerprint = (
            f"bert text; examples={examples.key}; n={len(examples)}; seed={plan.seed}; batch_size={plan.batch_size}; "
            f"buckets={'/'.join(map(str, plan.buckets))}; shard=0/1"
        )
        self._examples, self._plan = examples, plan
        self._lengths = examples.lengths
        self._features = _laid_out(examples, plan)
        self._epoch, self._batch = 0, 0
        self._planned: tuple[int, list[PlannedBatch]] | None = None

    def get_state(self) -> dict[str, int]:
        """Returns the epoch, and the number of its batches that have been read."""
        return {"epoch": self._epoch, "batch": self._batch}

    def set_state(self, state: Any) -> None:
        """Continues at a position."""
        self._epoch, self._batch = int(state["epoch"]), int(state["batch"])

    def __next__(self) -> Any:
        while True:
            if self._plan.num_epochs is not None and self._epoch >= self._plan.num_epochs:
                raise StopIteration
            batches = self._of_epoch()
            if self._batch < len(batches):
                break
            if not batches:
                raise StopIteration
            self._epoch, self._batch = self._epoch + 1, 0
        batch = batches[self._batch]
        self._batch += 1
        return self._read(batch)

    def _of_epoch(self) -> list[PlannedBatch]:
        if self._planned is None or self._planned[0] != self._epoch:
            self._planned = (self._epoch, self._plan.epoch(self._lengths, self._epoch))
        return self._planned[1]

    def _read(self, batch: PlannedBatch) -> Any:
        missing = self._plan.batch_size - len(batch.rows)
        rows = np.concatenate([batch.rows, np.repeat(batch.rows[-1:], missing)])
        features = self._features(batch, rows)
        real = np.ones(len(rows), np.float32)
        real[len(batch.rows) :] = 0.0
        features[IS_REAL_EXAMPLE] = real
        return features if self._examples.labels is None else (features, self._examples.labels[rows])


def _laid_out(examples: EncodedExamples, plan: BatchPlan) -> Callable[[PlannedBatch, np.ndarray], dict[str, Any]]:
    """Returns a function that makes the features of a batch. Its arguments are the batch and the padded examples."""
    if plan.pack is False:
        return lambda batch, filled: examples.features(filled, batch.length)
    lengths = examples.lengths
    looked_at = [lengths[batch.rows] for batch in plan.epoch(lengths, 0)[:LOOKED_AT]]
    rows = None if plan.pack is True else plan.pack
    shapes = row_shapes(looked_at, plan.batch_size, int(lengths.max(initial=1)), rows)
    return lambda batch, _: packed_features(examples, batch.rows, shapes)


def choose_buckets(max_seq_length: int, buckets: Sequence[int] | int | None) -> tuple[int, ...]:
    """Returns the lengths of sequences: the given ones, a number of equally spaced ones, or only the longest.

    Raises:
        ArgumentError: the lengths cannot be used.

    Example:
        >>> choose_buckets(128, 4), choose_buckets(128, [16, 64]), choose_buckets(128, None)
        ((32, 64, 96, 128), (16, 64, 128), (128,))
    """
    if buckets is None:
        return (max_seq_length,)
    if isinstance(buckets, int):
        if not 1 <= buckets <= max_seq_length:
            raise ArgumentError(f"The number of buckets should be from 1 to {max_seq_length}, given: {buckets}.")
        return tuple(-(-max_seq_length * number // buckets) for number in range(1, buckets + 1))
    if any(not 3 <= length <= max_seq_length for length in buckets):
        raise ArgumentError(f"Buckets should lie between 3 and {max_seq_length}, given: {list(buckets)}.")
    return tuple(sorted({*buckets, max_seq_length}))
