"""Tests of pages that sessions measure and write: every kind and every peer has a row, and lines match the
templates.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator_testing.cli.scaffold import write_package
from tests.mutants.suites.run import SCORED
from tests.repo.counting import count_source

PAGES = Path(__file__).parents[2] / "docs" / "plugins"


def rows(page: str) -> dict[str, list[str]]:
    """Returns the cells of the table of a page, by the first cell of a row."""
    lines = (PAGES / page).read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row[1:] for row in cells[1:]}


@pytest.mark.parametrize("kind", SCORED)
def test_the_way_of_an_author_is_there_for_each_kind_with_the_lines_of_today(tmp_path: Path, kind: str) -> None:
    *seconds, total, passed, component, tests, package = rows("time_to_green.md")[kind]
    name = f"acme-{kind.replace('_', '-')}"
    written = [path for path in write_package(name, kind, tmp_path) if path.suffix == ".py"]
    lines = {path.name: count_source(path.read_text()).lines for path in written}
    assert (int(component), int(tests)) == (lines[f"{kind}.py"], lines[f"test_{kind}.py"])
    assert int(package) == sum(lines.values())
    assert int(passed) > 0
    assert sum(map(float, seconds)) == pytest.approx(float(total), abs=0.3)


def test_each_peer_is_measured_or_left_out_by_name() -> None:
    found = rows("footprint.md")
    assert {"estimator-core", "pluggy", "keras jax", "lightning"} <= set(found)
    for name, (version, count, megabytes, *_, milliseconds) in found.items():
        if version != "not installed here":
            assert re.match(r"\d+\.", version), name
            assert min(float(count), float(megabytes), float(milliseconds)) > 0, name
