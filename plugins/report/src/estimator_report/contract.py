"""The contract of report sections: their input and their output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, kw_only=True)
class ReportSource:
    """The subject of a page.

    Args:
        model_dir: the model_dir of the run.
        evaluation: the name of the evaluation, or "" for the unnamed evaluation.
        results: the metrics by global step, in the order of the steps.
    """

    model_dir: Path
    evaluation: str
    results: Mapping[int, Mapping[str, Any]]

    @property
    def newest(self) -> Mapping[str, Any]:
        """The metrics of the last step. Empty if there are none."""
        return self.results[max(self.results)] if self.results else {}


@runtime_checkable
class ReportSection(Protocol):
    """One part of the report page: a component of kind "report_section"."""

    @property
    def title(self) -> str:
        """The heading."""
        ...

    @property
    def order(self) -> int:
        """The sort key of the section. Sections are sorted in ascending order."""
        ...

    def body(self, source: ReportSource) -> str | None:
        """Returns the HTML below the heading, or None to omit the section.

        Escape text from outside (`html.escape`). Do not use scripts or load anything. Pictures are inline SVG.

        Args:
            source: the results of the run.
        """
        ...
