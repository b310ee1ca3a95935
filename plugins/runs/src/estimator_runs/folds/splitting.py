"""Which rows train and which are held out, by the splitters of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.schema import Crossval
from estimator_runs.folds.rows import Rows

#: Name: class of sklearn.model_selection, whether it shuffles by default.
_SPLITTERS = {
    "k_fold": ("KFold", True),
    "stratified": ("StratifiedKFold", True),
    "grouped": ("GroupKFold", False),
    "stratified_grouped": ("StratifiedGroupKFold", True),
    "time_ordered": ("TimeSeriesSplit", False),
}


def splits(crossval: Crossval, rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
    """The numbers of the rows to train on and of those held out, fold by fold.

    Raises:
        ArgumentError: scikit-learn is not installed, or cannot split these rows.
    """
    splitter = _splitter(crossval)
    groups = None
    if crossval.splitter in ("grouped", "stratified_grouped"):
        if crossval.groups not in rows.features:
            raise ArgumentError(
                f"The splitter {crossval.splitter!r} needs crossval.groups, the name of a feature: there are "
                f"{sorted(rows.features)}."
            )
        groups = rows.features[str(crossval.groups)].reshape(len(rows))
    labels = np.unique(rows.labels, return_inverse=True)[1] if rows.labels.dtype.hasobject else rows.labels
    try:
        return list(splitter.split(np.zeros(len(rows)), labels, groups))
    except ValueError as error:
        raise ArgumentError(f"{len(rows)} rows cannot be split by {crossval.splitter!r}: {error}") from error


def _splitter(crossval: Crossval) -> Any:
    try:
        from sklearn import model_selection
    except ModuleNotFoundError as error:
        raise ArgumentError('Cross-validation needs scikit-learn: pip install "estimator-runs[folds]".') from error
    name, shuffles = _SPLITTERS[crossval.splitter]
    shuffle = shuffles if crossval.shuffle is None else crossval.shuffle
    if crossval.splitter == "time_ordered":
        if shuffle:
            raise ArgumentError("Rows in the order of time are not shuffled: take out crossval.shuffle.")
        return model_selection.TimeSeriesSplit(n_splits=crossval.folds)
    seeded = {"shuffle": True, "random_state": crossval.seed} if shuffle else {}
    return getattr(model_selection, name)(n_splits=crossval.folds, **seeded)
