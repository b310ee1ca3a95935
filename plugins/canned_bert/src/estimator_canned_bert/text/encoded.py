"""Examples as token ids in memory-mapped files: encoded once, read in any order, and possibly larger than memory."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_bert.features import INPUT_IDS, INPUT_MASK, SEGMENT_IDS
from estimator_canned_bert.text.rows import Row
from estimator_canned_bert.text.sequences import joined
from estimator_canned_bert.text.tokenizer import Tokenizer
from estimator_core.storage import draft_of

_CHUNK, _FORMAT = 2048, 1
#: A function that returns the label of a row as a number. It raises InputError.
LabelOf = Callable[[Row], float]


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedExamples:
    """Sequences of token ids, concatenated.

    Args:
        tokens: int32, the tokens of all sequences.
        ends: int64 [examples + 1], the start of each sequence, and the end of the last one.
        first: int32 [examples], the number of tokens of the first segment.
        labels: int32 or float32 [examples], or None.
        pad_id: the id of padding.
        key: a hash that identifies the contents.
    """

    tokens: np.ndarray
    ends: np.ndarray
    first: np.ndarray
    labels: np.ndarray | None
    pad_id: int
    key: str

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each example."""
        return np.diff(self.ends)

    def features(self, rows: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Returns the features of some examples, padded to `length`: int32 [rows, length]."""
        ids = np.full((len(rows), length), self.pad_id, np.int32)
        mask, segments = (np.zeros((len(rows), length), np.int32) for _ in range(2))
        for place, row in enumerate(rows):
            begin, end = self.ends[row], self.ends[row + 1]
            ids[place, : end - begin] = self.tokens[begin:end]
            mask[place, : end - begin] = 1
            segments[place, self.first[row] : end - begin] = 1
        return {INPUT_IDS: ids, INPUT_MASK: mask, SEGMENT_IDS: segments}


def encode_examples(
    rows: Callable[[], Iterable[Row]],
    tokenizer: Tokenizer,
    *,
    max_seq_length: int,
    label_of: LabelOf | None,
    regression: bool,
    facts: dict[str, Any],
    cache_dir: Path | None,
    title: str,
) -> EncodedExamples:
    """Encodes all rows, or reads the result of an earlier call from the cache.

    Args:
        rows: a function that returns the rows from the start.
        tokenizer: the tokenizer. Several threads process a chunk of rows.
        max_seq_length: the maximum number of tokens of a sequence.
        label_of: a function that returns the label of a row as a number; None: there are no labels.
        regression: whether labels are floats.
        facts: the other facts on which the contents depend (the file, its layout).
        cache_dir: the directory where encoded files are kept; None: a temporary directory for this process.
        title: the title of the progress bar.
    """
    facts = {**facts, "tokenizer": tokenizer.fingerprint, "length": max_seq_length, "format": _FORMAT}
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
    base = Path(tempfile.mkdtemp(prefix="encoded-")) if cache_dir is None else cache_dir
    directory = base / key
    if not (directory / "ends.npy").is_file():
        base.mkdir(parents=True, exist_ok=True)
        try:
            with draft_of(directory) as writing:
                writing.mkdir()
                _write(writing, rows(), tokenizer, max_seq_length, label_of, regression, title)
                if not (directory / "ends.npy").is_file():
                    shutil.rmtree(directory, ignore_errors=True)  # the incomplete files
        except OSError:
            if not (directory / "ends.npy").is_file():  # otherwise another process wrote the same files first
                raise
    found = _open(directory, tokenizer.pad_id, key, with_labels=label_of is not None)
    if cache_dir is None:
        weakref.finalize(found, shutil.rmtree, base, ignore_errors=True)
    return found


def _open(directory: Path, pad_id: int, key: str, *, with_labels: bool) -> EncodedExamples:
    return EncodedExamples(
        tokens=np.memmap(directory / "tokens.bin", np.int32, "r"),
        ends=np.load(directory / "ends.npy"),
        first=np.load(directory / "first.npy"),
        labels=np.load(directory / "labels.npy") if with_labels else None,
        pad_id=pad_id,
        key=key,
    )


def _write(
    directory: Path,
    rows: Iterable[Row],
    tokenizer: Tokenizer,
    max_seq_length: int,
    label_of: LabelOf | None,
    regression: bool,
    title: str,
) -> None:
    ends, first, labels = array("q", [0]), array("i"), array("d")
    with (directory / "tokens.bin").open("wb") as file, _progress(title) as bar:
        for chunk in _chunks(rows):
            if label_of is not None:
                labels.extend(label_of(row) for row in chunk)
            ids_a = tokenizer.encode([row.text_a for row in chunk])
            pairs = chunk[0].text_b is not None
            ids_b: list[Any] = tokenizer.encode([row.text_b or "" for row in chunk]) if pairs else [None] * len(chunk)
            for one, two in zip(ids_a, ids_b, strict=True):
                sequence, of_first = joined(
                    one,
                    two,
                    max_length=max_seq_length,
                    first_id=tokenizer.first_id,
                    separator_id=tokenizer.separator_id,
                )
                file.write(array("i", sequence).tobytes())
                ends.append(ends[-1] + len(sequence))
                first.append(of_first)
            bar.update(len(chunk))
    np.save(directory / "first.npy", np.array(first, np.int32))
    np.save(directory / "labels.npy", np.array(labels, np.float32 if regression else np.int32))
    np.save(directory / "ends.npy", np.array(ends, np.int64))


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, _CHUNK)):
        yield chunk


def _progress(title: str) -> Any:
    from tqdm import tqdm

    # disable=None: a progress bar on a terminal, nothing in a log file.
    return tqdm(desc=title, unit=" examples", disable=None, leave=False)
