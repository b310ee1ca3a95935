"""The transfer of the rows of a weight matrix to another vocabulary."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError, VariableError, check_count

#: The tokens in the order of their ids, or a text file with one token per line.
Vocabulary: TypeAlias = "str | os.PathLike[str] | Sequence[str] | Sequence[bytes] | Sequence[int]"


@dataclass(frozen=True)
class VocabInfo:
    """The tokens of the rows (or columns) of a variable, now and in the checkpoint.

    Args:
        new_vocab: the tokens of the new variable: a text file with one per line, or a list of text, bytes or integers.
        new_vocab_size: the number of these tokens that are used.
        num_oov_buckets: the number of rows for other tokens, after those rows.
        old_vocab: the tokens of the checkpoint's variable.
        old_vocab_size: the number of these tokens that were used; -1: all.
        backup_initializer: a function of `(key, shape, dtype)` for rows of new tokens and of out-of-vocabulary
            buckets; None fills them with zeros.
        axis: 0 for rows, 1 for columns.

    Raises:
        ArgumentError: a size or the axis cannot be used.

    Example:
        >>> info = VocabInfo(["b", "c"], 2, 1, ["a", "b"])
        >>> info.remap(np.array([[1.0], [2.0]]), (3, 1), np.zeros((3, 1))).tolist()
        [[2.0], [0.0], [0.0]]

    Source: `tf.estimator.VocabInfo`.
    """

    new_vocab: Vocabulary
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Vocabulary
    old_vocab_size: int = -1
    backup_initializer: Callable[..., Any] | None = None
    axis: int = 0

    def __post_init__(self) -> None:
        if self.axis not in (0, 1):
            raise ArgumentError(
                f"VocabInfo(axis={self.axis!r}): the axis of the vocabulary is 0 (rows) or 1 (columns)."
            )
        if self.backup_initializer is not None and not callable(self.backup_initializer):
            raise ArgumentTypeError(
                f"VocabInfo(backup_initializer={self.backup_initializer!r}): give a function of (key, shape, dtype), "
                "such as jax.nn.initializers.normal(), or None for zeros."
            )
        names = _of_other_arguments(self.backup_initializer)
        if names is not None:
            raise ArgumentTypeError(
                f"VocabInfo(backup_initializer={self.backup_initializer!r}): it is a function of ({', '.join(names)}), "
                "but is called with (key, shape, dtype), like those of jax.nn.initializers. Change its arguments."
            )
        for name, least in (("new_vocab_size", 1), ("num_oov_buckets", 0), ("old_vocab_size", -1)):
            check_count(f"VocabInfo: {name}", getattr(self, name), least=least)
        if (
            self.new_vocab_size < 1
            or self.num_oov_buckets < 0
            or (self.old_vocab_size < 1 and self.old_vocab_size != -1)
        ):
            raise ArgumentError(
                f"VocabInfo: new_vocab_size={self.new_vocab_size}, num_oov_buckets={self.num_oov_buckets}, "
                f"old_vocab_size={self.old_vocab_size}. Sizes are positive, buckets not negative, and "
                "old_vocab_size may be -1 (all)."
            )

    def remap(self, old: np.ndarray, shape: tuple[int, ...], backup: np.ndarray) -> np.ndarray:
        """Returns the new value: rows of known tokens come from `old`, and the others from `backup`.

        Args:
            old: the value in the checkpoint.
            shape: the shape of the new value.
            backup: values of that shape, for new tokens and buckets.

        Raises:
            VariableError: the shapes do not fit the vocabularies.
        """
        new_tokens = _tokens(self.new_vocab)[: self.new_vocab_size]
        old_tokens = _tokens(self.old_vocab)
        old_tokens = old_tokens if self.old_vocab_size == -1 else old_tokens[: self.old_vocab_size]
        self._check(len(new_tokens), len(old_tokens), old.shape, shape)
        where = {token: index for index, token in reversed(list(enumerate(old_tokens)))}
        pairs = [(index, where[token]) for index, token in enumerate(new_tokens) if token in where]
        result = np.array(backup)
        if pairs:
            new_places, old_places = map(list, zip(*pairs, strict=True))
            if self.axis == 0:
                result[new_places] = old[old_places]
            else:
                result[:, new_places] = old[:, old_places]
        return result

    def _check(self, new_tokens: int, old_tokens: int, old_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
        if new_tokens != self.new_vocab_size:
            raise VariableError(
                f"VocabInfo: new_vocab_size is {self.new_vocab_size}, but new_vocab has {new_tokens} tokens."
            )
        if old_tokens != self.old_vocab_size and self.old_vocab_size != -1:
            raise VariableError(
                f"VocabInfo: old_vocab_size is {self.old_vocab_size}, but old_vocab has {old_tokens} tokens."
            )
        rows = new_tokens + self.num_oov_buckets
        if len(shape) <= self.axis or shape[self.axis] != rows:
            raise VariableError(
                f"VocabInfo: the variable has shape {list(shape)}; with new_vocab_size {new_tokens} and "
                f"{self.num_oov_buckets} buckets its "
                f"axis {self.axis} must be {rows}."
            )
        others = [size for axis, size in enumerate(shape) if axis != self.axis]
        old_others = [size for axis, size in enumerate(old_shape) if axis != self.axis]
        if len(old_shape) != len(shape) or others != old_others or old_shape[self.axis] < old_tokens:
            raise VariableError(
                f"VocabInfo: the checkpoint's value has shape {list(old_shape)}, the variable {list(shape)}, and "
                f"old_vocab {old_tokens} "
                f"tokens. Axis {self.axis} must have room for the tokens and the other axes must agree."
            )


def _of_other_arguments(function: Any) -> list[str] | None:
    """Returns the arguments of a function if (key, shape, dtype) do not match, as for TensorFlow initializers."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin, or of None
        return None
    names = list(signature.parameters)
    try:
        signature.bind(None, (), None)
    except TypeError:
        return names
    return names if names[0] == "shape" or "partition_info" in names else None


def _tokens(vocabulary: Vocabulary) -> list[str]:
    if not isinstance(vocabulary, str | os.PathLike):
        return [_token(token) for token in vocabulary]
    path = Path(os.path.expanduser(vocabulary))
    if not path.is_file():
        raise ArgumentError(f"VocabInfo: there is no vocabulary file {str(path)!r}.")
    try:
        # Not splitlines: vocabularies contain tokens that it treats as line ends.
        with path.open(encoding="utf-8", newline="\n") as lines:
            return [line.rstrip("\r\n") for line in lines]
    except UnicodeDecodeError as error:
        raise ArgumentError(f"VocabInfo: the vocabulary file {str(path)!r} is not UTF-8 text: {error}.") from error


def _token(token: object) -> str:
    """Returns a token of a list in the form of a line of a file: text, from its bytes, or from an integer."""
    return token.decode() if isinstance(token, bytes) else str(token)
