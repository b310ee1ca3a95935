"""Short sentences packed into rows: the position of each sentence of a batch, and the features that describe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimator_canned_bert.features import FIRST_TOKENS, INPUT_IDS, INPUT_MASK, PIECES, SEGMENT_IDS
from estimator_canned_bert.text.encoded import EncodedExamples

#: The number of batches that determine the usual number of rows.
LOOKED_AT = 64


@dataclass(frozen=True, kw_only=True)
class RowShape:
    """The shape of a packed batch.

    Args:
        batch_size: the number of sentences.
        depth: the number of pieces for each sentence. `PIECES` pieces make a row.
        width: the number of tokens of a piece.
    """

    batch_size: int
    depth: int
    width: int

    @classmethod
    def of(cls, batch_size: int, rows: int, length: int) -> RowShape:
        """Returns the smallest shape with at least this many rows of at least this many tokens.

        Example:
            >>> shape = RowShape.of(batch_size=32, rows=9, length=100)
            >>> shape.rows, shape.length
            (9, 128)
        """
        return cls(batch_size=batch_size, depth=-(-rows * PIECES // batch_size), width=-(-length // PIECES))

    @property
    def rows(self) -> int:
        """The number of rows of a batch."""
        return self.batch_size * self.depth // PIECES

    @property
    def length(self) -> int:
        """The number of tokens of a row."""
        return PIECES * self.width


def first_fit(lengths: np.ndarray, length: int) -> tuple[np.ndarray, int]:
    """Puts sentences into rows. The longest comes first, and each is put into the first row with enough space.

    Args:
        lengths: the number of tokens of each sentence, at most `length`. Sentences of equal length keep their order.
        length: the number of tokens of a row.

    Returns:
        int64 [sentences], the position of each first token, counted over all rows, and the number of rows.

    Example:
        >>> first_fit(np.array([3, 6, 4]), 8)
        (array([12,  0,  8]), 2)
    """
    used = np.zeros(len(lengths), np.int64)
    places = np.zeros(len(lengths), np.int64)
    for sentence in np.argsort(-lengths, kind="stable").tolist():
        row = int(np.argmax(used + lengths[sentence] <= length))
        places[sentence] = row * length + used[row]
        used[row] += lengths[sentence]
    return places, int(np.count_nonzero(used))


def row_shapes(batches: Sequence[np.ndarray], batch_size: int, longest: int, rows: int | None) -> tuple[RowShape, ...]:
    """Returns the shapes of a run: the usual one, and one with a row for each sentence, for batches that do not fit.

    Args:
        batches: the number of tokens of each sentence, by batch.
        batch_size: the number of sentences of a full batch.
        longest: the number of tokens of the longest sentence.
        rows: the number of rows of the usual shape; None: the number with the fewest rows over these batches, with
            fallbacks.
    """
    whole = RowShape.of(batch_size, batch_size, longest)
    if rows is None:
        needed = np.array([first_fit(lengths, whole.length)[1] for lengths in batches])
        candidates = [RowShape.of(batch_size, number, longest).rows for number in np.unique(needed).tolist()]
        rows = min(candidates, key=lambda number: int(np.where(needed <= number, number, batch_size).sum()))
    usual = RowShape.of(batch_size, rows, longest)
    return (usual,) if usual.rows >= batch_size else (usual, whole)


def packed_features(examples: EncodedExamples, chosen: np.ndarray, shapes: Sequence[RowShape]) -> dict[str, np.ndarray]:
    """Returns the features of some examples in the first of the shapes that is large enough.

    A batch with fewer examples than the shape is padded by repeating a position, which needs no further token.

    Args:
        examples: the encoded examples.
        chosen: the numbers of the examples, in the order of the predictions.
        shapes: the shapes, of one batch size and one length.
    """
    lengths = examples.lengths[chosen]
    places, rows = first_fit(lengths, shapes[0].length)
    shape = next(shape for shape in shapes if rows <= shape.rows)
    size = (shape.batch_size, shape.depth, shape.width)
    ids = np.full(size, examples.pad_id, np.int32)
    sentences, segments = (np.zeros(size, np.int32) for _ in range(2))
    flat_ids, flat_sentences, flat_segments = (array.reshape(-1) for array in (ids, sentences, segments))
    in_row = dict.fromkeys(range(shape.rows), 0)
    for place, example, count in zip(places.tolist(), chosen.tolist(), lengths.tolist(), strict=True):
        begin, end = place, place + count
        in_row[place // shape.length] += 1
        flat_ids[begin:end] = examples.tokens[examples.ends[example] : examples.ends[example + 1]]
        flat_sentences[begin:end] = in_row[place // shape.length]
        flat_segments[begin + examples.first[example] : end] = 1
    firsts = np.zeros(shape.batch_size, np.int32)
    firsts[: len(places)] = places
    return {INPUT_IDS: ids, INPUT_MASK: sentences, SEGMENT_IDS: segments, FIRST_TOKENS: firsts}
