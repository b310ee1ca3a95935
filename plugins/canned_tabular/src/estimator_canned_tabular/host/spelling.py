"""Values that have several spellings but are one category: dates and truth values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_canned_tabular.host.booleans import canonical_truth, texts_of_truths
from estimator_canned_tabular.host.dates import CURE, canonical_date, texts_of_dates


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """The rule that converts the values of a column to one canonical form.

    Attributes:
        kind: the kind of value, for messages.
        cure: the advice in messages.
        canonical: a function that returns the canonical form of a text, or None for a text of another kind.
        texts: a function that converts objects of the kind in an array to texts.
    """

    kind: str
    cure: str
    canonical: Callable[[str | bytes], bytes | None]
    texts: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


DATES = Spelling(kind="date", cure=CURE, canonical=canonical_date, texts=texts_of_dates)
TRUTHS = Spelling(
    kind="truth value",
    cure="Write it as true or false; leave it empty where there is none.",
    canonical=canonical_truth,
    texts=texts_of_truths,
)


def spelling_of(column: Any) -> Spelling | None:
    """Returns the spelling rule of a column; None: its values are used unchanged."""
    return DATES if getattr(column, "dates", False) else TRUTHS if getattr(column, "truths", False) else None
