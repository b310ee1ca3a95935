"""The suite for report sections."""

from __future__ import annotations

import copy
import html.parser
import math
import re
from pathlib import Path
from typing import Any

from estimator_report.contract import ReportSection, ReportSource
from estimator_report.page import build_page

_HOSTILE = '<script>alert("x")</script>'
_VOID = ("meta", "br", "hr", "img", "link", "input")


class ReportSectionSuite:
    """Proves the contract of a section. Subclass it and define the section.

    Attributes:
        results: the metrics by step for which the section has content.
    """

    results: dict[int, dict[str, Any]]

    def section(self) -> ReportSection:
        """Returns the section under test."""
        raise NotImplementedError

    def test_is_a_section(self) -> None:
        """It has a title, an order and a body."""
        assert isinstance(self.section(), ReportSection)

    def test_says_nothing_where_there_is_nothing(self) -> None:
        """It returns None without results."""
        assert self.section().body(self._source({})) is None

    def test_gives_whole_html_that_loads_nothing(self) -> None:
        """Its tags are closed, and it has no script and no address."""
        body = self.section().body(self._source(self.results))
        assert body
        page = build_page("x", self._source(self.results), [self.section()])
        assert unclosed(page) == []
        assert not re.search(r"<script|\bsrc=|\bhref=|url\(|https?://", body)

    def test_text_from_outside_is_escaped(self) -> None:
        """A name in the data is shown as text."""
        renamed = _renamed(self.results, _HOSTILE)
        hostile = {step: {**metrics, _HOSTILE: 1.0} for step, metrics in renamed.items()}
        assert "<script" not in (self.section().body(self._source(hostile)) or "")

    def test_is_the_same_again_and_changes_nothing(self) -> None:
        """A second call, and a second object, return the same. The results stay as they are."""
        source, before = self._source(self.results), self._source(self.results).results
        section = self.section()
        first = section.body(source)
        assert section.body(source) == first, "asked again, it returns something else"
        assert self.section().body(source) == first, "another object returns something else"
        assert repr(source.results) == repr(before), "it changes the results"

    def test_a_number_that_is_none_is_shown(self) -> None:
        """Metrics that are NaN or infinite lead to complete HTML."""
        for odd in (math.nan, math.inf, -math.inf):
            source = self._source(_with_numbers(self.results, odd))
            assert unclosed(build_page("x", source, [self.section()])) == [], f"results of {odd}"

    def test_one_evaluation_is_enough(self) -> None:
        """With the results of one step it has content, or returns None."""
        step = max(self.results)
        assert unclosed(build_page("x", self._source({step: self.results[step]}), [self.section()])) == []

    def _source(self, results: dict[int, dict[str, Any]]) -> ReportSource:
        return ReportSource(model_dir=Path("runs/x"), evaluation="", results=copy.deepcopy(results))


def unclosed(page: str) -> list[str]:
    """Returns tags that are opened and not closed, or closed and not opened."""
    open_tags: list[str] = []
    wrong: list[str] = []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in _VOID:
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if not open_tags or open_tags.pop() != tag:
                wrong.append(tag)

    Parser().feed(page)
    return open_tags + wrong


def _with_numbers(value: Any, number: float) -> Any:
    """Returns the results with this number for each metric that is a real number. Counts and steps stay."""
    if isinstance(value, dict):
        return {key: _with_numbers(each, number) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_numbers(each, number) for each in value]
    return number if isinstance(value, float) else value


def _renamed(value: Any, name: str) -> Any:
    """Returns the results with another value in every slice, and another metric."""
    if isinstance(value, dict):
        renamed = {key: _renamed(each, name) for key, each in value.items()}
        if renamed.get("slice"):
            renamed["slice"] = dict.fromkeys(renamed["slice"], name)
        elif all(isinstance(key, str) for key in renamed) and "examples" not in renamed and "slices" in renamed:
            renamed[name] = 1.0
        return renamed
    return [_renamed(each, name) for each in value] if isinstance(value, list) else value
