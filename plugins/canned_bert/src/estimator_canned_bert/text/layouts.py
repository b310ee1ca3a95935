"""The columns of texts and label in a file: the layouts of the GLUE tasks, or what a header or the columns show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from estimator_core.errors import ArgumentError

_TEXT_A = ("text_a", "sentence1", "sentence", "text", "question1", "question", "premise", "review", "string")
_TEXT_B = ("text_b", "sentence2", "question2", "hypothesis", "answer")
_LABEL = ("label", "labels", "gold_label", "score", "quality", "is_duplicate", "class", "target")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of one file, counted from 0.

    Args:
        text_a: the column of the first text.
        text_b: the column of the second text; None: there is one text.
        label: the column of the label. A negative number counts from the end. None: there are no labels.
        header: whether the first line names the columns.
    """

    text_a: int
    text_b: int | None = None
    label: int | None = None
    header: bool = False


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A task, with its files, their columns and its labels.

    Args:
        train: the columns of the training and development files.
        test: the columns of the test file.
        labels: the names of the classes in their order; None: the label is a number.
        dev_files: the names of development files without suffix. The first that exists is read.
        test_files: the names of test files without suffix. The first that exists is read.
    """

    train: Columns
    test: Columns
    labels: tuple[str, ...] | None
    dev_files: tuple[str, ...] = ("dev",)
    test_files: tuple[str, ...] = ("test",)

    @property
    def regression(self) -> bool:
        """Whether the label is a number."""
        return self.labels is None


def _layout(train: Columns, test: tuple[int, int | None], labels: Sequence[str] | None) -> Layout:
    text_a, text_b = test
    columns = Columns(text_a=text_a, text_b=text_b, header=True)
    return Layout(train=train, test=columns, labels=None if labels is None else tuple(labels))


_BINARY = ("0", "1")
_ENTAILS = ("entailment", "not_entailment")
_MNLI = _layout(Columns(text_a=8, text_b=9, label=-1, header=True), (8, 9), ("contradiction", "entailment", "neutral"))

#: The layouts of the files of the GLUE tasks, by name.
TASKS: dict[str, Layout] = {
    "cola": _layout(Columns(text_a=3, label=1), (1, None), _BINARY),
    "mnli": replace(_MNLI, dev_files=("dev_matched", "dev"), test_files=("test_matched", "test")),
    "mnli-mm": replace(_MNLI, dev_files=("dev_mismatched",), test_files=("test_mismatched",)),
    "mrpc": _layout(Columns(text_a=3, text_b=4, label=0, header=True), (3, 4), _BINARY),
    "qnli": _layout(Columns(text_a=1, text_b=2, label=-1, header=True), (1, 2), _ENTAILS),
    "qqp": _layout(Columns(text_a=3, text_b=4, label=5, header=True), (1, 2), _BINARY),
    "rte": _layout(Columns(text_a=1, text_b=2, label=-1, header=True), (1, 2), _ENTAILS),
    "sst-2": _layout(Columns(text_a=0, label=1, header=True), (1, None), _BINARY),
    "sts-b": _layout(Columns(text_a=7, text_b=8, label=-1, header=True), (7, 8), None),
    "wnli": _layout(Columns(text_a=1, text_b=2, label=-1, header=True), (1, 2), _BINARY),
}


def task_layout(task: str) -> Layout:
    """Returns the layout of a GLUE task.

    Raises:
        ArgumentError: the task is unknown.

    Example:
        >>> task_layout("MRPC").train.text_b
        4

    Source: the processors of `run_classifier.py` of google-research/bert; the files of GLUE.
    """
    found = TASKS.get(task.lower())
    if found is None:
        raise ArgumentError(f"Task not found: {task!r}. Tasks: {', '.join(TASKS)}; leave it out for other files.")
    return found


def named_columns(names: Sequence[str], *, labels: bool = True) -> Columns | None:
    """Returns the columns that a header names, or None if the line is not a header.

    Args:
        names: the cells of the line.
        labels: whether a header of several columns needs a label or two texts. Otherwise one text is enough, as in a
            test file with an id and a text.

    Example:
        >>> named_columns(["id", "sentence1", "sentence2", "label"])
        Columns(text_a=1, text_b=2, label=3, header=True)
    """
    places = {name.strip().lower(): place for place, name in reversed(list(enumerate(names)))}
    text_a = next((places[name] for name in _TEXT_A if name in places), None)
    if text_a is None:
        return None
    text_b = next((places[name] for name in _TEXT_B if name in places), None)
    if text_b is None and "sentence" in places and "question" in places:  # QNLI
        text_a, text_b = places["question"], places["sentence"]
    label = next((places[name] for name in _LABEL if name in places), None)
    if text_b is None and label is None:
        return None if labels and len(names) > 1 else Columns(text_a=text_a, header=True)
    return Columns(text_a=text_a, text_b=text_b, label=label, header=True)


def counted_columns(count: int, *, labels: bool) -> Columns | None:
    """Returns the columns of a file without a header: a label (if there are labels) and one or two texts.

    Example:
        >>> counted_columns(3, labels=True)
        Columns(text_a=1, text_b=2, label=0, header=False)
    """
    texts = count - 1 if labels else count
    if texts not in (1, 2):
        return None
    first = int(labels)
    return Columns(text_a=first, text_b=first + 1 if texts == 2 else None, label=0 if labels else None)
