"""The token ids of one or two texts, combined in the form of BERT: [CLS] first [SEP] second [SEP]."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.errors import ArgumentError

#: A sequence with this number of tokens has space for text, whether it has one text or two.
MOST_SPECIAL = 4


def check_room(max_length: int, pairs: bool) -> None:
    """Checks that a sequence has space for at least one token of a text.

    Raises:
        ArgumentError: there is not enough space.

    Example:
        >>> check_room(3, pairs=False)
    """
    if max_length < 3 + pairs:
        raise ArgumentError(f"max_seq_length is {max_length}: there is no room for any text. Give {3 + pairs} or more.")


def kept_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """Returns the number of tokens to keep of each of two texts. The longer one is shortened until both fit.

    If both have the same length, the second is shortened.

    Args:
        first: the number of tokens of the first text.
        second: the number of tokens of the second text.
        room: the total number of tokens that fit.

    Example:
        >>> kept_lengths(10, 3, 8), kept_lengths(10, 10, 7)
        ((5, 3), (4, 3))

    Source: `run_classifier._truncate_seq_pair` of google-research/bert, without its loop.
    """
    if first + second <= room:
        return first, second
    smaller, larger = room // 2, room - room // 2
    if second <= smaller:
        return room - second, second
    if first <= larger:
        return first, room - first
    return larger, smaller


def joined(
    first: Sequence[int], second: Sequence[int] | None, *, max_length: int, first_id: int, separator_id: int
) -> tuple[list[int], int]:
    """Returns the ids of a sequence of at most `max_length` tokens, and the number of them in the first segment.

    Example:
        >>> joined([7, 8], [9], max_length=8, first_id=1, separator_id=2)
        ([1, 7, 8, 2, 9, 2], 4)
    """
    if second is None:
        kept = list(first[: max_length - 2])
        return [first_id, *kept, separator_id], len(kept) + 2
    keep_first, keep_second = kept_lengths(len(first), len(second), max_length - 3)
    ids = [first_id, *first[:keep_first], separator_id, *second[:keep_second], separator_id]
    return ids, keep_first + 2
