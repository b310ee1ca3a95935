"""Blocks of several files in turn. Threads decode them in advance and do not influence the order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from estimator_inputs.reading.blocks import Block, FileKind, Piece, Place
from estimator_inputs.reading.unchanged import pieces_of


class Placed(NamedTuple):
    """A block, the place in the epoch before it, and its number in the epoch."""

    block: Block
    place: dict[str, Any]
    number: int


class _Slot:
    """An open file."""

    def __init__(self, file: int, place: Place, pieces: Iterator[Piece]) -> None:
        self.file = file
        self.place = place
        self.pieces = pieces


class InterleavedBlocks(Iterator[Placed]):
    """Yields the blocks of one epoch of files.

    Args:
        kind: the kind of the files.
        files: the files, in the order in which they are opened.
        in_turn: the number of files that are open at a time. Each yields one block in its turn.
        executor: the executor that decodes blocks in advance. None: blocks are decoded in this thread.
        ahead: the number of blocks that are decoded in advance.
        all_bad_rows: see `FileKind.decode`.
        place: the place where reading begins. None: the start.
    """

    def __init__(
        self,
        kind: FileKind,
        files: Sequence[Path],
        *,
        in_turn: int,
        executor: Executor | None,
        ahead: int,
        all_bad_rows: bool,
        place: dict[str, Any] | None = None,
    ) -> None:
        self._kind = kind
        self._files = files
        self._all_bad_rows = all_bad_rows
        self._executor = executor
        self._ahead = ahead if executor else 0
        self._waiting: deque[tuple[Callable[[], Block], dict[str, Any], int]] = deque()
        place = place or {"open": [[file, None] for file in range(min(in_turn, len(files)))], "turn": 0}
        self._slots = [_Slot(file, at, pieces_of(kind, files[file], at)) for file, at in place["open"]]
        self._turn: int = place["turn"]
        self._number: int = place.get("number", 0)
        self._bad: int = place.get("bad", 0)
        self._next_file: int = place.get("next", len(self._slots))

    def __next__(self) -> Placed:
        while len(self._waiting) <= self._ahead and self._schedule():
            pass
        if not self._waiting:
            raise StopIteration
        decoded, place, number = self._waiting.popleft()
        block = decoded()
        place["bad"] = self._bad
        self._bad += len(block.bad)
        return Placed(block, place, number)

    def _place(self) -> dict[str, Any]:
        return {
            "open": [[slot.file, slot.place] for slot in self._slots],
            "turn": self._turn,
            "number": self._number,
            "next": self._next_file,
        }

    def _schedule(self) -> bool:
        """Takes the next piece of the file whose turn it is. Returns False at the end of the epoch."""
        while self._slots:
            place = self._place()
            slot = self._slots[self._turn]
            piece = next(slot.pieces, None)
            if piece is not None:
                slot.place = piece.after
                self._waiting.append((self._decode(piece), place, self._number))
                self._number += 1
                self._turn = (self._turn + 1) % len(self._slots)
                return True
            if self._next_file < len(self._files):
                file = self._next_file
                self._next_file += 1
                self._slots[self._turn] = _Slot(file, None, pieces_of(self._kind, self._files[file], None))
            else:
                del self._slots[self._turn]
                self._turn = self._turn % len(self._slots) if self._slots else 0
        return False

    def _decode(self, piece: Piece) -> Callable[[], Block]:
        if self._executor is None:
            return lambda: self._kind.decode(piece, all_bad_rows=self._all_bad_rows)
        future: Future[Block] = self._executor.submit(self._kind.decode, piece, all_bad_rows=self._all_bad_rows)
        return future.result


def files_of(
    files: Sequence[Path], *, seed: int | None, epoch: int, shard: tuple[int, int], by_files: bool
) -> list[Path]:
    """Returns the files of one process in one epoch, in the order in which they are opened.

    Args:
        files: all files.
        seed: the seed of the order. None: the order of `files`.
        epoch: the number of the epoch. Each epoch has its own order.
        shard: (this process, number of processes).
        by_files: whether the processes divide the files. Otherwise each process reads all files.
    """
    order = range(len(files)) if seed is None else _permutation(len(files), seed, epoch)
    own = [files[number] for number in order]
    return own[shard[0] :: shard[1]] if by_files else own


def _permutation(n: int, seed: int, epoch: int) -> list[int]:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch, 0)))).permutation(n).tolist()
