"""The pieces of a scoring that processes exchange: parts of files, their scores, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from estimator_core.errors import ArgumentError, EstimatorError
from estimator_core.storage import copied_files, is_url
from estimator_exporters.scoring.batch import Batch
from estimator_exporters.scoring.plan import Plan
from estimator_exporters.scoring.read import Reading, read
from estimator_exporters.scoring.score import Scored, score


class Piece(NamedTuple):
    """A batch of a file, or its end.

    Attributes:
        file: the number of the file, from 0.
        place: the index of the piece within the file, from 0.
        batch: the batch, or None at the end of the file.
        fault: the error message if the file could not be read to its end, else empty.
    """

    file: int
    place: int
    batch: Batch | None
    fault: str = ""


class Part(NamedTuple):
    """The result of a piece.

    Attributes:
        file: the number of the file, as in the piece.
        place: the index within the file, as in the piece.
        scored: the rows with their scores, or None at the end of the file.
        fault: the error message that ends the scoring, else empty.
    """

    file: int
    place: int
    scored: tuple[Scored, ...] | None
    fault: str = ""


def pieces_of(file: int, location: str, reading: Reading) -> Iterator[Piece]:
    """Yields the pieces of a file. A fault is a piece too, so that every engine passes it on unchanged."""
    place = 0
    copy = copied_files(location)[0] if is_url(location) else None
    try:
        for batch in read(copy or Path(location), reading):
            yield Piece(file, place, batch)
            place += 1
        yield Piece(file, place, None)
    except EstimatorError as error:
        yield Piece(file, place, None, str(error))
    finally:
        if copy is not None:
            copy.unlink()


def part_of(piece: Piece, signature: Any, plan: Plan) -> Part:
    """Returns the scores of a piece."""
    if piece.batch is None:
        return Part(piece.file, piece.place, None, piece.fault)
    reading = plan.reading
    found = score(signature, [piece.batch], batch_size=reading.batch_size, skip_bad_rows=reading.skip_bad_rows)
    try:
        return Part(piece.file, piece.place, tuple(found))
    except EstimatorError as error:
        return Part(piece.file, piece.place, None, str(error))


def in_order(parts: Iterable[Part], locations: Sequence[str]) -> Iterator[Scored]:
    """Yields the scores of parts. The parts arrive in the order of files and places, each once.

    Raises:
        ArgumentError: a fault that a part carries.
        RuntimeError: a part is missing or repeated, because the engine has lost or repeated rows.
    """
    file, place = 0, 0
    for part in parts:
        if (part.file, part.place) != (file, place):
            raise RuntimeError(
                f"The engine returned part {part.place} of file {part.file} where part {place} of file {file} was due: "
                "rows were lost or repeated. No output is written; run it again."
            )
        if part.fault:
            raise ArgumentError(part.fault)
        if part.scored is None:
            file, place = file + 1, 0
            continue
        yield from part.scored
        place += 1
    if (file, place) != (len(locations), 0):
        missing = locations[min(file, len(locations) - 1)]
        raise RuntimeError(f"The engine ended within {missing}: rows were lost. No output is written; run it again.")
