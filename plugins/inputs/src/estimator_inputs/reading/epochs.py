"""Windows of rows over all epochs."""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from estimator_core.errors import InputError
from estimator_inputs.reading.bad_rows import BadRowLog, BadRows
from estimator_inputs.reading.blocks import FileKind
from estimator_inputs.reading.interleave import InterleavedBlocks, Placed, files_of
from estimator_inputs.reading.options import ReadPlan
from estimator_inputs.reading.ragged import Columns, rows_of, take
from estimator_inputs.reading.windows import (
    Window,
    numbers_of_part,
    plain_windows,
    rows_of_shard,
    shuffled_windows,
)

#: The bytes that distinguish files of the same name and size.
_BEGIN = 1 << 16


class NoRowsError(InputError):
    """The files have no good row for this process. Code that reads many files one by one may skip such a file.

    Example:
        >>> issubclass(NoRowsError, InputError)
        True
    """


class EpochWindow(NamedTuple):
    """A window within the sequence of all epochs.

    Attributes:
        columns: the columns of the rows, in the order in which they are returned.
        rows: the number of rows.
        place: the place where the window begins, as JSON values.
    """

    columns: Columns
    rows: int
    place: dict[str, Any]


class EpochReader:
    """Reads the rows of files that belong to one process.

    Args:
        files: all files.
        kind: the kind of the files.
        plan: the order in which they are read.
        seed: the seed of the order of shuffled rows.
        shard: (this process, number of processes).
        log: the log of the bad rows.
    """

    def __init__(
        self,
        files: tuple[Path, ...],
        kind: FileKind,
        plan: ReadPlan,
        seed: int,
        shard: tuple[int, int],
        log: BadRowLog,
    ) -> None:
        self._files = files
        self._kind = kind
        self._plan = plan
        self._seed = seed if plan.shuffle else None
        self._shard = shard
        self._by_files = _by_files(plan.shard_by, len(files), shard[1])
        self.bad = BadRows(skip=plan.on_error == "skip", log=log)

    def fingerprint(self) -> str:
        """Returns a text that identifies the rows and their order."""
        plan = self._plan
        sizes = ",".join(_names_and_sizes(self._files))
        facts = {
            "files": len(self._files),
            "names_and_sizes": f"{zlib.crc32(sizes.encode()):08x}",
            "seed": self._seed,
            "shuffle": plan.shuffle,
            "buffer": plan.shuffle_buffer_size if plan.shuffle else None,
            "in_turn": plan.in_turn,
            "block_bytes": plan.block_bytes,
            "on_error": plan.on_error,
            "hold_out": plan.hold_out_every and f"{plan.hold_out_every} {_part(plan.held_out)}",
            "shard": f"{self._shard[0]}/{self._shard[1]}{' by files' if self._by_files else ''}",
            "columns": self._kind.summary.replace("; ", "_"),
        }
        return "; ".join([self._kind.name, *(f"{name}={value}" for name, value in facts.items())])

    def windows(self, start: dict[str, Any] | None) -> Iterator[EpochWindow]:
        """Yields the windows from a place on. None: from the first window.

        The threads end with the generator.
        """
        plan, bad = self._plan, self.bad
        threads = plan.parser_num_threads
        epoch = 0 if start is None else int(start["epoch"])
        had_rows = start is not None
        # in another epoch, the process has other files, of which some have rows
        may_lack = self._by_files and self._shard[1] > 1 and self._seed is not None
        bad.begin(0 if start is None else int(start["bad"]), of_epoch=0 if start is None else start["blocks"]["bad"])
        executor = ThreadPoolExecutor(threads, thread_name_prefix="estimator-inputs") if threads else None
        ending = sys.is_finalizing  # a local name, because the names of modules are gone when the interpreter ends
        try:
            while plan.num_epochs is None or epoch < plan.num_epochs:
                rows, before = 0, bad.before_epoch
                for window in self._of_epoch(executor, epoch, start):
                    yield EpochWindow(window.columns, window.rows, {"epoch": epoch, "bad": before, **window.place})
                    rows += window.rows
                bad.end_epoch(epoch, rows)
                if not rows and start is None and not (had_rows and may_lack):
                    here = f" for process {self._shard[0]} of {self._shard[1]}" if self._shard[1] > 1 else ""
                    raise NoRowsError(
                        f"No rows{here} in {len(self._files)} files, "
                        f"beginning with {self._files[0]} ({bad.count} bad rows were skipped)."
                    )
                epoch, start, had_rows = epoch + 1, None, had_rows or bool(rows)
        finally:
            if executor is not None and not ending():  # when the interpreter ends, its threads have already ended
                executor.shutdown()

    def _of_epoch(self, executor: Executor | None, epoch: int, start: dict[str, Any] | None) -> Iterator[Window]:
        plan = self._plan
        blocks = InterleavedBlocks(
            self._kind,
            files_of(self._files, seed=self._seed, epoch=epoch, shard=self._shard, by_files=self._by_files),
            in_turn=plan.in_turn,
            executor=executor,
            ahead=plan.parser_num_threads,
            all_bad_rows=plan.on_error == "skip",
            place=None if start is None else start["blocks"],
        )
        if self._seed is None:
            return plain_windows(blocks, self._mine)
        return shuffled_windows(
            blocks,
            self._mine,
            size=plan.shuffle_buffer_size,
            seed=(self._seed, epoch),
            skip=0 if start is None else int(start["skip"]),
            window=0 if start is None else int(start["window"]),
        )

    def _mine(self, placed: Placed) -> Columns | None:
        """Returns the rows of a block that belong to this process, or None if there are none. Counts bad rows."""
        block = placed.block
        self.bad.add(block.bad)
        if not block.rows:
            return None
        columns, every = block.columns, self._plan.hold_out_every
        if every is not None:
            columns = take(columns, numbers_of_part(block.rows, block.first, every, self._plan.held_out))
        if not self._by_files and self._shard[1] > 1:
            columns = rows_of_shard(columns, placed.number, self._shard)
        return columns if rows_of(columns) else None


def _names_and_sizes(files: tuple[Path, ...]) -> list[str]:
    """Returns the name and size of each file. Files that share both also have the checksum of their first bytes."""
    found = [f"{path.name}:{path.stat().st_size}" for path in files]
    times = Counter(found)
    pairs = zip(found, files, strict=True)
    return [one if times[one] == 1 else f"{one}:{_begin_of(path)}" for one, path in pairs]


def _begin_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"{zlib.crc32(file.read(_BEGIN)):08x}"


def _part(held_out: bool | tuple[int, ...]) -> str:
    if isinstance(held_out, tuple):
        return "+".join(map(str, held_out))
    return "held" if held_out else "others"


def _by_files(shard_by: str, files: int, shards: int) -> bool:
    if shard_by in ("auto", "batches"):
        return files % shards == 0 or files >= 10 * shards
    return shard_by == "files"
