"""Sentences for `bert.py`: real English from the help of Python, or rows without padding. Needs only numpy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

#: The smallest number of words of a sentence. Shorter ones are headings and table cells.
SHORTEST = 3


class Sentences(NamedTuple):
    """Token ids, one sentence after the other.

    Attributes:
        tokens: the ids of all sentences, int32.
        ends: the offsets at which each sentence begins and ends, int64 [sentences + 1].
        labels: the label of each sentence, int32 [sentences].
    """

    tokens: np.ndarray
    ends: np.ndarray
    labels: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each sentence."""
        return np.diff(self.ends)

    def of(self, number: int) -> np.ndarray:
        """Returns the ids of one sentence."""
        return self.tokens[self.ends[number] : self.ends[number + 1]]

    def padded(self, begin: int, count: int, length: int) -> dict[str, np.ndarray]:
        """Returns sentences padded to `length`: input_ids, attention_mask and labels."""
        ids, mask = (np.zeros((count, length), np.int32) for _ in range(2))
        for row in range(count):
            sentence = self.of(begin + row)
            ids[row, : len(sentence)] = sentence
            mask[row, : len(sentence)] = 1
        return {"input_ids": ids, "attention_mask": mask, "labels": self.labels[begin : begin + count]}


def english() -> list[str]:
    """Returns the sentences of the help topics of Python, in a fixed random order."""
    from pydoc_data.topics import topics

    found: list[str] = []
    for topic in topics.values():
        for paragraph in re.split(r"\n\s*\n", topic):
            found += re.split(r"(?<=[.!?:])\s+", " ".join(paragraph.split()))
    chosen = [sentence for sentence in found if len(sentence.split()) >= SHORTEST]
    return [chosen[place] for place in np.random.default_rng(0).permutation(len(chosen))]


def saved(place: Path, texts: str, count: int, length: int, vocabulary: int) -> Path:
    """Writes a file of sentences that every side reads, and returns its path.

    Args:
        place: the directory of the file.
        texts: "real" (English, cut at `length` tokens) or "full" (rows of `length` random tokens).
        count: the number of sentences.
        length: the number of tokens of the longest sentence.
        vocabulary: the number of ids. All ids are below it.
    """
    rng = np.random.default_rng(1)
    if texts == "full":
        sentences = [rng.integers(5, vocabulary, size=length) for _ in range(count)]
    else:
        sentences = [np.array(ids[:length]) for ids in _tokenised(english()[:count], place)]
    file = place / "sentences.npz"
    np.savez(
        file,
        tokens=np.concatenate(sentences).astype(np.int32),
        ends=np.concatenate([[0], np.cumsum([len(ids) for ids in sentences])]),
        labels=rng.integers(0, 2, size=len(sentences)).astype(np.int32),
    )
    return file


def read(file: str) -> Sentences:
    """Returns the sentences that `saved` wrote."""
    with np.load(file) as arrays:
        return Sentences(arrays["tokens"], arrays["ends"], arrays["labels"])


def _tokenised(texts: list[str], place: Path) -> list[list[int]]:
    from estimator_canned_bert import Tokenizer, build_vocabulary

    tokenizer = Tokenizer(build_vocabulary(texts, place / "vocab.txt", size=8000))
    return [[tokenizer.first_id, *ids, tokenizer.separator_id] for ids in tokenizer.encode(texts)]
