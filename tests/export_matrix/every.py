"""Collects all cases."""

from __future__ import annotations

from tests.export_matrix import heads, programs, tabular, texts
from tests.export_matrix.cases import Case


def every_case() -> list[Case]:
    """Returns the cases in the order of the page."""
    return [*programs.cases(), *texts.cases(), *tabular.cases(), *heads.cases()]
