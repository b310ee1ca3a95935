"""The host transform from text to the features of a model_fn. Exports contain it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_bert.features import INPUT_IDS, INPUT_MASK, SEGMENT_IDS
from estimator_canned_bert.text.sequences import check_room, joined
from estimator_canned_bert.text.tokenizer import Tokenizer
from estimator_core.errors import ArgumentError

TEXT_A, TEXT_B = "text_a", "text_b"


class BertTokens:
    """Converts `text_a` (and `text_b`) to `input_ids`, `input_mask` and `segment_ids` on the host.

    Args:
        vocabulary: a vocab.txt or tokenizer.json.
        max_seq_length: the number of tokens of every sequence. Longer ones are cut, shorter ones padded.
        pairs: whether there are two texts.
        do_lower_case: whether the model of a vocab.txt is uncased; None: see `Tokenizer`.

    Raises:
        ArgumentError: the vocabulary or the length cannot be used.
    """

    name, version = "bert_tokens", 1

    def __init__(
        self,
        vocabulary: str | os.PathLike[str],
        max_seq_length: int = 128,
        pairs: bool = False,
        do_lower_case: bool | None = None,
    ) -> None:
        check_room(max_seq_length, pairs)
        self._tokenizer = Tokenizer(vocabulary, do_lower_case=do_lower_case)
        self._length = max_seq_length
        self._pairs = pairs

    def config(self) -> dict[str, Any]:
        """Returns the arguments from which the transform can be made again."""
        lower = self._tokenizer.do_lower_case
        return {"max_seq_length": self._length, "pairs": self._pairs, "do_lower_case": lower}

    @property
    def files(self) -> Mapping[str, Path]:
        """The vocabulary file."""
        return {"vocabulary": self._tokenizer.path}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the batch with int32 [batch, max_seq_length] features instead of the texts."""
        rules = self._tokenizer
        first = rules.encode(texts_of(batch, TEXT_A))
        second = rules.encode(texts_of(batch, TEXT_B)) if self._pairs else [None] * len(first)
        ids = np.full((len(first), self._length), rules.pad_id, np.int32)
        mask, segments = (np.zeros((len(first), self._length), np.int32) for _ in range(2))
        for row, (one, two) in enumerate(zip(first, second, strict=True)):
            sequence, of_first = joined(
                one, two, max_length=self._length, first_id=rules.first_id, separator_id=rules.separator_id
            )
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
            segments[row, of_first : len(sequence)] = 1
        kept = {name: array for name, array in batch.items() if name not in (TEXT_A, TEXT_B)}
        return {**kept, INPUT_IDS: ids, INPUT_MASK: mask, SEGMENT_IDS: segments}


def texts_of(batch: Mapping[str, np.ndarray], name: str) -> list[str]:
    """Returns one column of texts. Bytes are read as UTF-8.

    Raises:
        ArgumentError: the column is missing, has a further axis, or holds values that are not text.
    """
    column = batch.get(name)
    if column is None:
        raise ArgumentError(f"There is no text {name!r}. Features: {', '.join(sorted(batch)) or 'none'}.")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ArgumentError(f"{name!r} should hold one text per example, given: shape {column.shape}.")
    texts: list[str] = []
    for row, value in enumerate(column.tolist()):
        if isinstance(value, bytes):
            try:
                value = value.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ArgumentError(f"{name!r}, example {row}: not UTF-8 at byte {error.start}.") from error
        if not isinstance(value, str):
            raise ArgumentError(f"{name!r}, example {row}: not a string: {value!r}.")
        texts.append(value)
    return texts
