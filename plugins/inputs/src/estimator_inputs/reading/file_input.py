"""An input of files: an input_fn, and the iterator over its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.inputs import InputContext, InputOptions
from estimator_inputs.reading.bad_rows import BadRowLog, BadRows
from estimator_inputs.reading.blocks import FileKind
from estimator_inputs.reading.epochs import EpochReader, EpochWindow
from estimator_inputs.reading.options import ReadPlan
from estimator_inputs.reading.ragged import Columns, cut, join, take
from estimator_inputs.reading.unchanged import pieces_of
from estimator_inputs.reading.windows import numbers_of_part


class FileInput:
    """The input_fn that the functions of this package return. Each call returns a new iterator over batches.

    Attributes:
        files: the files to read.
        kind: the kind of the files.
        plan: the order of the rows and the size of the batches.
        bad_row_log: the log of the bad rows, which all iterators share.
    """

    def __init__(self, files: tuple[Path, ...], kind: FileKind, plan: ReadPlan) -> None:
        self.files = files
        self.kind = kind
        self.plan = plan
        self.bad_row_log = BadRowLog()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns to read, including the label, in the order of the files."""
        return self.kind.columns

    def __call__(self, *, config: Any = None, input_context: InputContext | None = None) -> FileIterator:
        """Returns a new iterator over the share of this process.

        Args:
            config: the RunConfig. Its `tf_random_seed` is used for shuffling if no seed was set.
            input_context: the share to read. Default: all rows.
        """
        seed = self.plan.seed
        if seed is None:
            seed = getattr(config, "tf_random_seed", None) or 0
        context = input_context or InputContext()
        if self.plan.by_batches:
            return FileIterator(self, int(seed), (0, 1), together=context.num_input_pipelines)
        return FileIterator(self, int(seed), (context.input_pipeline_id, context.num_input_pipelines))


class FileIterator(Iterator[Any]):
    """Yields batches of rows of files, from any row on.

    A position is the place where the current window begins, and the number of its rows that were returned. A place
    consists of the offsets of the open files, which are a few numbers per file. The batch size and the number of
    threads may therefore differ after a restart.

    Args:
        source: the input to read.
        seed: the seed of the order.
        shard: (this process, number of processes), if processes divide the files or the rows by number.
        together: the number of processes that read the same batches and keep their own rows of each batch.
    """

    def __init__(self, source: FileInput, seed: int, shard: tuple[int, int], *, together: int = 1) -> None:
        plan = source.plan
        self._source = source
        self.input_options = InputOptions(
            fresh_arrays=True,
            endless=plan.num_epochs is None,
            varying_shapes=source.kind.varying_shapes,
            whole=together > 1,
        )
        self._batch = source.kind.batch
        self._batch_size = plan.batch_size * together
        self._drop_remainder = plan.drop_remainder
        self._epochs = EpochReader(source.files, source.kind, plan, seed, shard, source.bad_row_log)
        self._windows: Iterator[EpochWindow] | None = None
        self._start: dict[str, Any] | None = None
        self._held: EpochWindow | None = None
        self._offset = 0

    @property
    def bad_rows(self) -> int:
        """The number of rows skipped so far."""
        return self._epochs.bad.count

    @property
    def fingerprint(self) -> str:
        """A text that identifies the files and their order."""
        return self._epochs.fingerprint()

    def get_state(self) -> dict[str, Any] | None:
        """Returns the place of the next row, or None before the first row."""
        held = self._held
        return self._start if held is None else {**held.place, "rows": self._offset}

    def set_state(self, state: dict[str, Any] | None) -> None:
        """Continues at a place that `get_state` returned."""
        self._windows = self._held = None
        self._start, self._offset = state, 0

    def __next__(self) -> Any:
        columns = self.next_columns()
        if columns is None:
            raise StopIteration
        return self._batch(columns)

    def parts(self) -> Iterator[tuple[Any, Callable[[int], str]]]:
        """Yields all files from the start, in order, for all processes.

        Each part has features and labels, and a function that names a row.

        Rows of other parts are left out, so that nothing is learned from them.
        """
        kind, plan = self._source.kind, self._source.plan
        bad = BadRows(skip=plan.on_error == "skip", log=None)
        for path in self._source.files:
            before = 0
            for piece in pieces_of(kind, path, None):
                block = kind.decode(piece, all_bad_rows=plan.on_error == "skip")
                bad.add(block.bad)
                where = block.where or partial(_row_of, path, before)
                if block.rows and plan.hold_out_every is None:
                    yield kind.batch(block.columns), where
                elif block.rows:
                    chosen = numbers_of_part(block.rows, block.first, plan.hold_out_every or 0, plan.held_out)
                    if chosen.size:
                        yield kind.batch(take(block.columns, chosen)), partial(_row_of_part, where, chosen)
                before += block.rows

    def next_columns(self) -> Columns | None:
        """Returns the columns of the next batch, or None at the end."""
        wanted = self._batch_size
        parts: list[Columns] = []
        while wanted:
            held = self._held
            if held is None or self._offset == held.rows:
                if not self._advance():
                    break
                continue
            taken = min(wanted, held.rows - self._offset)
            parts.append(cut(held.columns, self._offset, self._offset + taken))
            self._offset += taken
            wanted -= taken
        if not parts or (wanted and self._drop_remainder):
            return None
        return join(parts)

    def _advance(self) -> bool:
        """Moves to the next window. The last window is kept as the place of the end."""
        skip = 0
        if self._windows is None:
            self._windows = self._epochs.windows(self._start)
            skip = 0 if self._start is None else int(self._start["rows"])
        found = next(self._windows, None)
        if found is None:
            return False
        self._held, self._offset = found, min(skip, found.rows)
        return True


def _row_of_part(where: Callable[[int], str], chosen: np.ndarray, row: int) -> str:
    return where(int(chosen[row]))


def _row_of(path: Path, before: int, row: int) -> str:
    return f"{path}, row {before + row}"
