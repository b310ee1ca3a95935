"""The rows to train on and the rows held out, chosen by the splitters of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.schema import Crossval
from estimator_runs.folds.rows import Rows

#: For each name: the class of sklearn.model_selection, and whether it shuffles by default.
_SPLITTERS = {
    "k_fold": ("KFold", True),
    "stratified": ("StratifiedKFold", True),
    "grouped": ("GroupKFold", False),
    "stratified_grouped": ("StratifiedGroupKFold", True),
    "time_ordered": ("TimeSeriesSplit", False),
}
#: The splitters that keep the rows of a group together.
_GROUPED = ("grouped", "stratified_grouped")


def splits(crossval: Crossval, rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the numbers of the rows to train on and of those held out, for each fold.

    Raises:
        ArgumentError: scikit-learn is not installed, or cannot split these rows. Also if groups are missing, cannot be
            used, or are set for a splitter that ignores them.
    """
    splitter = _splitter(crossval)
    groups = _groups(crossval, rows)
    labels = _numbered(rows.labels, "The labels") if rows.labels.dtype.hasobject else rows.labels
    try:
        return list(splitter.split(np.zeros(len(rows)), labels, groups))
    except ValueError as error:
        raise ArgumentError(f"{len(rows)} rows cannot be split by {crossval.splitter!r}: {error}") from error


def _groups(crossval: Crossval, rows: Rows) -> np.ndarray | None:
    """Returns a number for the group of each row; None: the splitter ignores groups."""
    name = crossval.groups
    if crossval.splitter not in _GROUPED:
        if name is not None:
            raise ArgumentError(
                f"crossval.groups = {name!r} has no effect on the splitter {crossval.splitter!r}: rows of one group "
                f"would be on both sides. Set crossval.splitter to one of {', '.join(_GROUPED)}, or remove "
                'crossval.groups ("none" removes that of another file).'
            )
        return None
    if name is None or name not in rows.features:
        raise ArgumentError(
            f"The splitter {crossval.splitter!r} needs crossval.groups, the name of a feature. "
            f"{'' if name is None else f'Given: {name!r}. '}Features: {sorted(rows.features)}."
        )
    found = rows.features[name]
    if found.size != len(rows):
        raise ArgumentError(
            f"The feature {name!r} cannot be crossval.groups: it has the shape {list(found.shape[1:])} in each row. "
            "Give a feature with one value in each row."
        )
    return _numbered(found.reshape(len(rows)), f"The feature {name!r} cannot be crossval.groups: its values")


def _numbered(values: np.ndarray, what: str) -> np.ndarray:
    """Converts values to numbers. Equal values become one number, and the order stays.

    Raises:
        ArgumentError: the values cannot be ordered, for example with a missing value among words.
    """
    empty = [(row, value) for row, value in enumerate(values.tolist()) if value is None or value != value]
    why = f"row {empty[0][0]} has none ({empty[0][1]})" if empty else "they are of several types"
    try:
        if not empty:
            return np.unique(values, return_inverse=True)[1]
    except TypeError:
        pass
    raise ArgumentError(f"{what} cannot be compared: {why}. Give each row a value of one type.")


def _splitter(crossval: Crossval) -> Any:
    try:
        from sklearn import model_selection
    except ModuleNotFoundError as error:
        raise ArgumentError('Cross-validation needs scikit-learn: pip install "estimator-runs[folds]".') from error
    name, shuffles = _SPLITTERS[crossval.splitter]
    shuffle = shuffles if crossval.shuffle is None else crossval.shuffle
    if crossval.splitter == "time_ordered":
        if shuffle:
            raise ArgumentError("Rows in the order of time are not shuffled: remove crossval.shuffle.")
        return model_selection.TimeSeriesSplit(n_splits=crossval.folds)
    seeded = {"shuffle": True, "random_state": crossval.seed} if shuffle else {}
    return getattr(model_selection, name)(n_splits=crossval.folds, **seeded)
