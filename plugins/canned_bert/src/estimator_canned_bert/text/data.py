"""The files of a task as inputs of an Estimator."""

from __future__ import annotations

import functools
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import estimator_core as ec
from estimator_canned_bert.features import INPUT_IDS, INPUT_MASK, SEGMENT_IDS
from estimator_canned_bert.text.batches import BatchPlan, TextInput, choose_buckets
from estimator_canned_bert.text.encoded import EncodedExamples, encode_examples
from estimator_canned_bert.text.layouts import Columns, Layout, task_layout
from estimator_canned_bert.text.rows import SUFFIXES, TEXTS, Row, has_header, read_rows
from estimator_canned_bert.text.sequences import MOST_SPECIAL, check_room
from estimator_canned_bert.text.tokenizer import Tokenizer
from estimator_canned_bert.text.transform import TEXT_A, TEXT_B, BertTokens
from estimator_core.errors import ArgumentError, InputError


class Split:
    """One file of a task, with its length, its rows as text, and input_fns over it.

    `ClassifierData` makes it. The first input_fn or `len` encodes the file.
    """

    def __init__(
        self,
        path: Path,
        columns: Columns | None,
        *,
        with_labels: bool,
        label_of: Callable[[Row], float] | None,
        encode: Callable[..., EncodedExamples],
        max_seq_length: int,
        vocab: Path,
        pairs: Callable[[], bool],
        headed: Callable[[], bool],
    ) -> None:
        self.path = path
        self._vocab = vocab
        self._columns = columns
        self._with_labels = with_labels
        self._label_of = label_of
        self._encode = encode
        self._max_seq_length = max_seq_length
        self._pairs = pairs
        self._headed = headed

    def __iter__(self) -> Iterator[Row]:
        return read_rows(self.path, self._columns, labels=self._with_labels, headed=self._headed())

    def __len__(self) -> int:
        return len(self.examples)

    @functools.cached_property
    def examples(self) -> EncodedExamples:
        """The encoded examples.

        Raises:
            InputError: rows cannot be read, or have one text while those of the training file have two, or the reverse.
        """
        paired = next(iter(self)).text_b is not None
        if paired != self._pairs():
            raise InputError(
                f"{self.path}: its rows have {TEXTS[paired]}, but those of the training file have "
                f"{TEXTS[not paired]}. Name its columns in its first line, or write it in the same form."
            )
        facts: dict[str, Any] = {
            "file": _content_hash(self.path),
            "suffix": self.path.suffix,
            "columns": None if self._columns is None else asdict(self._columns),
        }
        if not self._with_labels:  # the same file may be evaluated, too
            facts |= {"labelled": False, "headed": self._headed(), "empty_texts": True}
        return self._encode(
            lambda: iter(self), label_of=self._label_of, facts=facts, title=f"Encoding {self.path.name}"
        )

    def input_fn(
        self,
        batch_size: int,
        *,
        shuffle: bool = False,
        num_epochs: int | None = None,
        seed: int = 0,
        buckets: Sequence[int] | int | None = None,
        pack: bool | int = False,
    ) -> TextInput:
        """Returns an input_fn with batches of `input_ids`, `input_mask`, `segment_ids`, `is_real_example` and labels.

        Args:
            batch_size: the rows of every batch in each process. The last batch of an epoch is padded, and
                `is_real_example` marks the padding.
            shuffle: whether every epoch has a different order.
            num_epochs: the number of passes over the file. None: no end if shuffled, otherwise one.
            seed: the seed of the order.
            buckets: the lengths by which examples are grouped, or the number of lengths. Each length needs one more
                compiled program.
            pack: whether to put short sentences together into rows, for a model of this package. The batches have the
                same examples in the same order, and the results equal those of one sentence per row. Batches have one
                shape, and another one if their sentences do not fit. An integer is the number of rows. With True, the
                lengths determine it. On a mesh, set a number that the devices of the batch divide.

        Raises:
            ArgumentError: packing and buckets are both set, or there is less than one row.
        """
        epochs = num_epochs if num_epochs is not None or shuffle else 1
        plan = BatchPlan(
            batch_size=batch_size,
            buckets=choose_buckets(self._max_seq_length, buckets),
            seed=seed if shuffle else None,
            num_epochs=epochs,
            pack=pack,
        )
        return TextInput(self.examples, plan, [self.path, self._vocab])


class ClassifierData:
    r"""The files train, dev and test of a task, with its labels and its tokenizer.

    Args:
        data_dir: the directory with train.tsv, dev.tsv and test.tsv (or .csv, .jsonl). Missing files are None.
        vocab: a vocab.txt or tokenizer.json, or the directory of a pretrained model.
        max_seq_length: the maximum number of tokens of a sequence.
        do_lower_case: whether the model of a vocab.txt is uncased. None: the tokenizer_config.json next to it decides;
            without one it is uncased.
        task: the GLUE task whose layout and labels the files have. None: a header or the number of columns decides.
        labels: the names of the classes in their order. None: those of the task, or those of the training file, sorted.
        regression: whether the label is a number.
        suffix: the suffix of the files. None: the one that exists.
        cache_dir: the directory where encoded files are kept for the next run.

    Raises:
        ArgumentError, InputError: files or labels cannot be used. The message names file and line.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\ngood\nbad\n")
        >>> _ = (folder / "train.tsv").write_text("yes\tgood\nno\tbad bad\n")
        >>> data = ClassifierData(folder, vocab=folder, max_seq_length=5)
        >>> data.labels, len(data.train), data.dev
        (('no', 'yes'), 2, None)
        >>> next(data.train.input_fn(2)())[0]["input_ids"].tolist()
        [[2, 4, 3, 0, 0], [2, 5, 5, 3, 0]]

    Source: `run_classifier.DataProcessor` of google-research/bert.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        *,
        vocab: str | os.PathLike[str],
        max_seq_length: int = 128,
        do_lower_case: bool | None = None,
        task: str | None = None,
        labels: Sequence[str] | None = None,
        regression: bool = False,
        suffix: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.directory = Path(data_dir)
        self.max_seq_length = max_seq_length
        self.tokenizer = Tokenizer(vocab, do_lower_case=do_lower_case)
        layout = None if task is None else task_layout(task)
        self.regression = regression or (layout is not None and layout.regression)
        self._suffix = suffix
        self._cache = None if cache_dir is None else Path(cache_dir)
        train, dev, test = _columns(layout)
        paths = {
            "train": self._find(("train",)),
            "dev": self._find(layout.dev_files if layout else ("dev", "validation")),
            "test": self._find(layout.test_files if layout else ("test",)),
        }
        self.labels = self._labels(layout, labels, paths["train"] or paths["dev"], train)
        self._labelled = paths["train"] or paths["dev"]
        self.train = self._split(paths["train"], train, labelled=True)
        self.dev = self._split(paths["dev"], dev, labelled=True)
        self.test = self._split(paths["test"], test, labelled=False)
        if self.train is None and self.dev is None and self.test is None:
            raise ArgumentError(f"There is no train, dev or test file ({', '.join(SUFFIXES)}) in {self.directory}.")
        if max_seq_length < MOST_SPECIAL:  # only then the first row is read
            check_room(max_seq_length, self.pairs)

    @classmethod
    def from_tsv(cls, data_dir: str | os.PathLike[str], **options: Any) -> ClassifierData:
        """Returns the data of train.tsv, dev.tsv and test.tsv. The options are those of the class."""
        return cls(data_dir, suffix=".tsv", **options)

    @functools.cached_property
    def pairs(self) -> bool:
        """Whether an example has two texts."""
        splits = (self.train, self.dev, self.test)
        first = next(split for split in splits if split is not None)  # not `or`, which would request their lengths
        return next(iter(first)).text_b is not None

    def tokens(self) -> BertTokens:
        """Returns the host transform from text to features that matches these files."""
        return BertTokens(
            self.tokenizer.path,
            max_seq_length=self.max_seq_length,
            pairs=self.pairs,
            do_lower_case=self.tokenizer.do_lower_case,
        )

    def serving_input_receiver_fn(self) -> Callable[[], ec.export.ServingInputReceiver]:
        """Returns a function for exports whose requests have texts: `text_a` and, for pairs, `text_b`.

        The export contains the tokenizer.
        """
        features = {
            name: ec.export.Feature((None, self.max_seq_length), "int32")
            for name in (INPUT_IDS, INPUT_MASK, SEGMENT_IDS)
        }
        texts = {name: ec.export.Feature((None,), "string") for name in ((TEXT_A, TEXT_B) if self.pairs else (TEXT_A,))}
        tokens = self.tokens()

        def serving_input_receiver_fn() -> ec.export.ServingInputReceiver:
            return ec.export.ServingInputReceiver(features, texts, transforms=[tokens])

        return serving_input_receiver_fn

    def _find(self, names: Sequence[str]) -> Path | None:
        suffixes = SUFFIXES if self._suffix is None else (self._suffix,)
        for name in names:
            found = [path for suffix in suffixes if (path := self.directory / f"{name}{suffix}").is_file()]
            if len(found) > 1:
                raise ArgumentError(
                    f"There are both {found[0].name} and {found[1].name} in {self.directory}: set suffix=."
                )
            if found:
                return found[0]
        return None

    def _labels(
        self, layout: Layout | None, given: Sequence[str] | None, path: Path | None, columns: Columns | None
    ) -> tuple[str, ...]:
        if self.regression:
            if given is not None:
                raise ArgumentError("regression=True has no classes: leave out labels.")
            return ()
        if given is not None or (layout is not None and layout.labels is not None):
            chosen = tuple(given if given is not None else layout.labels)  # type: ignore[union-attr,arg-type]
        elif path is None:
            raise ArgumentError(f"There is no train file in {self.directory} to take the labels from: set labels=.")
        else:
            chosen = tuple(sorted({str(row.label) for row in read_rows(path, columns, labels=True)}))
        if len(set(chosen)) != len(chosen) or len(chosen) < 2:
            raise ArgumentError(f"There should be two or more different labels, found: {', '.join(chosen)} ({path}).")
        return chosen

    def _split(self, path: Path | None, columns: Columns | None, *, labelled: bool) -> Split | None:
        if path is None:
            return None
        encode = functools.partial(
            encode_examples,
            tokenizer=self.tokenizer,
            max_seq_length=self.max_seq_length,
            regression=self.regression,
            cache_dir=self._cache,
        )
        return Split(
            path,
            columns,
            with_labels=labelled,
            label_of=self._label_of(path) if labelled else None,
            encode=functools.partial(_with_labels, encode, self.labels),
            max_seq_length=self.max_seq_length,
            vocab=self.tokenizer.path,
            pairs=lambda: self.pairs,
            headed=lambda: self._headed,
        )

    @functools.cached_property
    def _headed(self) -> bool:
        """Whether a test file may start with a header that names only a text. No, if the training file has none."""
        return self._labelled is None or has_header(self._labelled) is not False

    def _label_of(self, path: Path) -> Callable[[Row], float]:
        ids = {label: index for index, label in enumerate(self.labels)}

        def number_of(row: Row) -> float:
            try:
                value = float(row.label or "")
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                raise InputError(f"{path}, line {row.line}: the label {row.label!r} is not a number.")
            return value

        def id_of(row: Row) -> float:
            found = ids.get(row.label or "")
            if found is None:
                raise InputError(
                    f"{path}, line {row.line}: the label {row.label!r} is unknown. Labels: {', '.join(self.labels)}."
                )
            return found

        return number_of if self.regression else id_of


def _columns(layout: Layout | None) -> tuple[Columns | None, Columns | None, Columns | None]:
    return (None, None, None) if layout is None else (layout.train, layout.train, layout.test)


def _with_labels(encode: Callable[..., EncodedExamples], labels: Sequence[str], rows: Any, **options: Any) -> Any:
    facts = {**options.pop("facts"), "labels": list(labels)}
    return encode(rows, facts=facts, **options)


def _content_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
