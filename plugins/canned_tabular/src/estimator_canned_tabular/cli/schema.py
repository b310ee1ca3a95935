"""The kind of each column of a file: inferred, written for the user to edit, and converted to feature columns."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.host.booleans import canonical_truth
from estimator_canned_tabular.host.spelling import DATES, TRUTHS
from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of

KINDS = ("numeric", "boolean", "vocabulary", "hash", "skip")
_MOST_WORDS, _FEW_WORDS, _FEW_NUMBERS, _SEEN_TWICE = 1000, 16, 20, 2
#: The classes of a label of truth values in every file format, as arrays of truth values have them.
_TRUTHS = ("False", "True")
#: Fewer rows than this cannot show an identifier. The share is below 1, because for many rows the number is an
#: estimate.
_ENOUGH, _ALL = 20, 0.97
#: Names of identifiers. The last two are names of an index in Parquet and CSV files of pandas.
_IDENTIFIER = re.compile(r"(^|_|[a-z](?=I))(id|Id|ID|key|Key)$|^__index_level_\d+__$|^Unnamed: \d+$")
#: The square of this scale, or of its reciprocal, leaves squared errors some digits in the range of float32.
_SMALLEST_SCALE = 1e-17


@dataclass(frozen=True, kw_only=True)
class ColumnSchema:
    """One column: a normalised number, a truth value, words of a vocabulary, hashed words, or a column that is skipped.

    Attributes:
        kind: the kind, one of `KINDS`.
        mean, scale: a number becomes `(number - mean) / scale`. An empty field becomes the mean, or the more frequent
            truth value.
        words: the vocabulary. Other words share a bucket.
        buckets: the number of buckets for hashed words.
        dimension: the dimension of the embedding in deep models; 0: an indicator with one number per word.
        missing_category: whether rows without a word form a separate category.
        dates: whether the words are dates and times of ISO 8601. Then every form of ISO 8601 is read, and nothing else.
        truths: whether the words are truth values that some rows lack. Then every spelling of them is read, and nothing
            else.
    """

    kind: str
    mean: float = 0.0
    scale: float = 1.0
    words: tuple[str, ...] = ()
    buckets: int = 0
    dimension: int = 8
    missing_category: bool = False
    dates: bool = False
    truths: bool = False


@dataclass(frozen=True, kw_only=True)
class Schema:
    """All columns of a table, with its label.

    Attributes:
        label: the name of the label column.
        classes: the names of the classes; empty: the label is a number.
        columns: the other columns by name.
        mean, scale: the model predicts `(label - mean) / scale` if the label is a number.

    Raises:
        ArgumentError: the square of the scale is outside the range of float32.
    """

    label: str
    classes: tuple[str, ...] = ()
    columns: Mapping[str, ColumnSchema] = field(default_factory=dict[str, ColumnSchema])
    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Checks the scale, because squared errors have the square of its size."""
        if not _SMALLEST_SCALE <= self.scale <= 1 / _SMALLEST_SCALE:
            raise ArgumentError(
                f"The label {self.label!r} has the scale {self.scale:g}, but it must be from {_SMALLEST_SCALE:g} to "
                f"{1 / _SMALLEST_SCALE:g}: squared errors would be zero or infinite in float32. Change its unit."
            )

    @classmethod
    def inferred(
        cls,
        profiles: Mapping[str, ColumnProfile],
        label: str,
        ignored: tuple[str | None, ...] = (),
        *,
        may_be_empty: bool = False,
        missing_category: bool = False,
    ) -> Schema:
        """Returns the schema that the values suggest.

        Args:
            profiles: the profiles of all columns.
            label: the column to predict.
            ignored: columns that are not features.
            may_be_empty: whether the label may be empty in some rows, which are left out later.
            missing_category: whether rows without a word, if there are any, form a separate category.

        Raises:
            ArgumentError: the label does not exist, there is no other column, or a feature has no name.
        """
        if label not in profiles:
            raise ArgumentError(f"There is no column {label!r}. Columns: {', '.join(profiles)}.")
        classes = _classes(profiles[label], label, may_be_empty=may_be_empty)
        columns = {
            name: _inferred(name, found, missing_category=missing_category)
            for name, found in profiles.items()
            if name != label and name not in ignored
        }
        if not columns:
            raise ArgumentError(f"There is no column other than the label {label!r}.")
        for number, name in enumerate(profiles, 1):
            if not name.strip() and name in columns and columns[name].kind != "skip":
                raise ArgumentError(f"Column {number} has no name: give it one in the first line.")
        if classes:
            return cls(label=label, classes=classes, columns=columns)
        return cls(label=label, columns=columns, mean=profiles[label].mean, scale=profiles[label].scale)

    def class_of(self, word: str) -> str:
        """Returns the class that a word of the label represents."""
        truth = canonical_truth(word) if self.has_truths else None
        return word if truth is None else truth.decode().title()

    @property
    def normalises_label(self) -> bool:
        """Whether the model predicts normalised numbers. Files of earlier versions do not ask for it."""
        return not self.classes and (self.mean, self.scale) != (0.0, 1.0)

    @property
    def has_truths(self) -> bool:
        """Whether the label is a truth value, which each file format spells differently. Users may reverse it."""
        return sorted(self.classes) == list(_TRUTHS)

    @classmethod
    def read(cls, path: Path) -> Schema:
        """Reads a file that `write` wrote and that a user may have edited.

        Raises:
            ArgumentError: the file is not a schema. The message names the column.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            listed = {name: _column(path, name, one) for name, one in data["columns"].items()}
            normal = {key: float(data[key]) for key in ("mean", "scale") if key in data}
            return cls(label=data["label"], classes=tuple(data["classes"]), columns=listed, **normal)
        except OSError as error:
            raise ArgumentError(f"{path} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ArgumentError(f"{path} holds no columns that can be read: {error!r}.") from error

    def write(self, path: Path) -> None:
        """Writes the file that `read` reads."""
        write_at_once(path, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")


def write_at_once(path: Path, text: str) -> None:
    """Writes a file that several processes may write at the same time. Every reader finds a complete file.

    Raises:
        ArgumentError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}.") from error


def _column(path: Path, name: str, given: Mapping[str, Any]) -> ColumnSchema:
    unknown = set(given) - {one.name for one in fields(ColumnSchema)}
    if unknown or given.get("kind") not in KINDS:
        raise ArgumentError(
            f"{path}, column {name!r}: kind must be one of {', '.join(KINDS)}; unknown keys: {sorted(unknown)}. "
            f"Given: {dict(given)}."
        )
    plain: dict[str, Any] = {**given, "words": tuple(given.get("words", ()))}
    return ColumnSchema(**plain)


def _inferred(name: str, profile: ColumnProfile, *, missing_category: bool) -> ColumnSchema:
    if profile.unread or _is_identifier(name, profile) or _tells_nothing(profile):
        return ColumnSchema(kind="skip")
    if profile.numbers:
        return ColumnSchema(kind="numeric", mean=profile.mean, scale=profile.scale)
    if _is_boolean(profile):
        share = sum(count for word, count in profile.words.items() if canonical_truth(word) == b"true") / profile.rows
        return ColumnSchema(kind="boolean", mean=share, scale=float(np.sqrt(share * (1 - share))))
    words, spelling = _words(profile)
    often = [word for word, count in words.items() if count >= _SEEN_TWICE]
    if not often:  # nothing, or names and keys: every value is different
        return ColumnSchema(kind="skip")
    dimension = 0 if len(often) <= _FEW_WORDS else int(np.clip(round(1.6 * profile.distinct**0.56), 2, 64))
    own = missing_category and profile.empty > 0
    common: dict[str, Any] = {"dimension": dimension, "missing_category": own, **spelling}
    if len(often) > _MOST_WORDS:
        return ColumnSchema(kind="hash", buckets=2 * profile.distinct, **common)
    return ColumnSchema(kind="vocabulary", words=tuple(sorted(often)), **common)


def _words(profile: ColumnProfile) -> tuple[Mapping[str, int], dict[str, bool]]:
    """Returns the words, with dates and truth values in the form that occurs first, and the fields of their kind."""
    for name, spelling in (("dates", DATES), ("truths", TRUTHS)):
        forms = {word: spelling.canonical(word) for word in profile.words} if profile.all_counted else {}
        if not forms or None in forms.values():
            continue
        spelled = {form: word for word, form in reversed(forms.items())}
        counts: dict[str, int] = {}
        for word, count in profile.words.items():
            known = spelled[forms[word]]
            counts[known] = counts.get(known, 0) + count
        return counts, {name: True}
    return profile.words, {}


def _is_boolean(profile: ColumnProfile) -> bool:
    """Returns whether every row has a truth value, and both values occur. Such a column is read as bool."""
    return not profile.empty and _are_truths(profile)


def _are_truths(profile: ColumnProfile) -> bool:
    return {canonical_truth(word) for word in profile.words} == {b"true", b"false"}


def _tells_nothing(profile: ColumnProfile) -> bool:
    """Returns whether all rows have one value. A word that some rows lack still distinguishes those rows."""
    return profile.distinct == 1 and (profile.numbers or not profile.empty)


def _is_identifier(name: str, profile: ColumnProfile) -> bool:
    """Returns whether every row has a different whole number, and the column counts rows or is named like an id.

    Numbers in the index of a table of pandas also number rows, of the table before it was split or sorted.
    """
    rows = profile.rows
    if not (profile.numbers and profile.whole) or profile.empty or rows < _ENOUGH or profile.distinct < _ALL * rows:
        return False
    counts = np.isclose(profile.scale, np.sqrt((rows**2 - 1) / 12), rtol=1e-6)  # of consecutive numbers
    return bool(counts) or _IDENTIFIER.search(name) is not None


def _classes(profile: ColumnProfile, label: str, *, may_be_empty: bool) -> tuple[str, ...]:
    if profile.empty and not may_be_empty:
        raise ArgumentError(
            f"The label {label!r} is empty in {profile.empty} rows: leave them out with --on-error skip."
        )
    if profile.unread:
        raise ArgumentError(f"The label {label!r} holds {profile.unread}: it must be one number or word in each row.")
    if profile.numbers and (profile.distinct > _FEW_NUMBERS or not profile.whole):
        if profile.endless:
            raise ArgumentError(
                f"The label {label!r} is nan or infinite in {profile.endless} rows: remove those rows from the file."
            )
        return ()
    if profile.numbers and profile.endless and not may_be_empty:
        raise ArgumentError(
            f"The label {label!r} is nan or infinite in {profile.endless} rows, and a number in the others: leave them "
            "out with --on-error skip."
        )
    if not profile.all_counted:
        raise ArgumentError(
            f"The label {label!r} has more than {len(profile.words)} different words, too many for classes."
        )
    if _are_truths(profile):
        return _TRUTHS
    names = tuple(sorted(word for word in profile.words if not profile.numbers or math.isfinite(float(word))))
    if len(names) < 2:
        raise ArgumentError(f"The label {label!r} has only one value: {''.join(names)!r}. Add rows with another value.")
    return names
