"""What can be written in several ways, and is one category in all of them: dates and truth values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_canned_tabular.host.dates import CURE, canonical_date, texts_of_dates
from estimator_canned_tabular.host.truths import canonical_truth, texts_of_truths


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """How the values of a column are brought to one form.

    Attributes:
        kind: what each value is, for messages.
        cure: what a message asks for.
        canonical: the one form of a text; None for any other text.
        texts: an array with other objects of the kind as texts.
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
    """That of a column; None: its values are taken as they are."""
    return DATES if getattr(column, "dates", False) else TRUTHS if getattr(column, "truths", False) else None
