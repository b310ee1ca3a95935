"""The common options of all file inputs: order, batches, shares of processes, and reading in advance."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from estimator_core.errors import ArgumentError, ArgumentTypeError, check_count
from estimator_inputs.reading.files import COMPRESSIONS

OnError = Literal["raise", "skip"]
ShardBy = Literal["auto", "batches", "files", "rows"]
#: The default number of files that a shuffled input reads in turn.
_IN_TURN = 4


class ReadOptions(TypedDict, total=False):
    """Keyword arguments of every input of files.

    Args:
        num_epochs: the number of passes over the files. Default: 1. None repeats forever. Batches may span two epochs.
        shuffle_buffer_size: the size in rows of the shuffle buffer, which is in memory. Default: 10,000.
        seed: the seed of the order of files and rows. None: `tf_random_seed` of the RunConfig, or 0 if it is not set.
        reader_num_threads: the number of files that are read alternately, block by block. Default: 4 if shuffled,
            otherwise 1, which keeps the order of the files.
        parser_num_threads: the number of threads that decode blocks in advance. They do not change the rows. 0 decodes
            a block when it is needed. Default: 0 for TFRecord, which threads do not decode faster, and 2 for others.
        block_bytes: the number of bytes of a file that are decoded at once. Default: 512 KiB.
        drop_remainder: whether to drop a short last batch.
        compression: "auto" (by suffix: .gz .bz2 .xz .zst .lz4), "none", "gzip", "bz2", "xz", "zstd", "lz4",
            or "zlib", which has no suffix.
        on_error: "raise", or "skip" to drop bad rows, count them and report them in the log.
        shard_by: the way in which processes share the rows. "batches": each reads all files and keeps its rows of every
            batch, so that order, numbers and positions are those of one process. "files": each reads its own files.
            "rows": each reads all files and picks its rows by number. With "files" and "rows", every process shuffles
            its own rows. "auto": "batches" if nothing is shuffled; "files" if they divide evenly, or if each process
            has at least ten; otherwise "rows".
        hold_out_every: holds out the last of every N neighbouring rows of a file. The rows are the same in every epoch,
            for any order and sharing. Both inputs need the same files, `block_bytes` and `vocabularies`.
        held_out: True reads the held-out rows, False (the default) all others. For more than two parts, a tuple of the
            places to read, from 0 to `hold_out_every - 1`: with 10, `(8,)` and `(9,)` are separate parts.
    """

    num_epochs: int | None
    shuffle_buffer_size: int
    seed: int | None
    reader_num_threads: int | None
    parser_num_threads: int
    block_bytes: int
    drop_remainder: bool
    compression: str
    on_error: OnError
    shard_by: ShardBy
    hold_out_every: int | None
    held_out: bool | tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ReadPlan:
    """The checked options of one input. See `ReadOptions`."""

    batch_size: int
    shuffle: bool
    num_epochs: int | None = 1
    shuffle_buffer_size: int = 10_000
    seed: int | None = None
    reader_num_threads: int | None = None
    parser_num_threads: int = 2
    block_bytes: int = 1 << 19
    drop_remainder: bool = False
    compression: str = "auto"
    on_error: OnError = "raise"
    shard_by: ShardBy = "auto"
    hold_out_every: int | None = None
    held_out: bool | tuple[int, ...] = False

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("shuffle_buffer_size", 1), ("block_bytes", 64)):
            check_count(name, getattr(self, name), least=least)
        check_count("parser_num_threads", self.parser_num_threads, least=0)
        for name in ("num_epochs", "reader_num_threads"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.hold_out_every is not None:
            check_count("hold_out_every", self.hold_out_every, least=2)
        elif self.held_out:
            raise ArgumentError("held_out needs hold_out_every: it selects rows by their place among that many.")
        if isinstance(self.held_out, tuple):
            self._check_places(self.held_out)
        if self.seed is not None:
            check_count("seed", self.seed, least=0)
        for name, allowed in (
            ("on_error", ("raise", "skip")),
            ("shard_by", ("auto", "batches", "files", "rows")),
            ("compression", COMPRESSIONS),
            ("shuffle", (True, False)),
            ("drop_remainder", (True, False)),
            *([] if isinstance(self.held_out, tuple) else [("held_out", (True, False))]),
        ):
            if getattr(self, name) not in allowed:
                raise ArgumentError(
                    f"{name} must be one of {', '.join(map(repr, allowed))}, given: {self._given(name)}."
                )

    def _check_places(self, places: tuple[int, ...]) -> None:
        every = self.hold_out_every or 0
        if not places or any(isinstance(place, bool) or place not in range(every) for place in places):
            raise ArgumentError(
                f"held_out must name places from 0 to {every - 1} among {every} rows, given: {places!r}."
            )

    @property
    def by_batches(self) -> bool:
        """Whether every process reads all rows and keeps its rows of each batch."""
        return self.shard_by == "batches" or (self.shard_by == "auto" and not self.shuffle)

    @classmethod
    def of(cls, batch_size: int, shuffle: bool, options: Any) -> ReadPlan:
        """Checks the arguments of an input.

        Raises:
                ArgumentError, ArgumentTypeError: a value is invalid. The message names the argument.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise ArgumentTypeError(f"There is no option {name!r}. Known options: {', '.join(known)}.")
        return cls(batch_size=batch_size, shuffle=shuffle, **options)

    @property
    def in_turn(self) -> int:
        """The number of files that are read in turn."""
        return self.reader_num_threads or (_IN_TURN if self.shuffle else 1)

    def _given(self, name: str) -> str:
        return repr(getattr(self, name))
