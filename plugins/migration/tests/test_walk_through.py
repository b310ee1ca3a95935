"""Tests that the statements in docs/migrate/walk_through.md are true."""

import re
from pathlib import Path

import pytest

from estimator_core.cli import main
from estimator_migration import rewrite
from plugins.migration.tests.proof_list import PAIRS, PROOFS

pytestmark = [pytest.mark.plugins, pytest.mark.libraries]

HERE = Path(__file__).parent
OLD, NEW = HERE / "programs" / "paper.py", HERE / "ported" / "paper.py"


@pytest.fixture
def page() -> str:
    return (HERE.parents[2] / "docs" / "migrate" / "walk_through.md").read_text(encoding="utf-8")


def test_what_check_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "check", str(OLD)]) == 3
    lines = capsys.readouterr().out.replace(str(OLD), "paper.py").splitlines()
    assert {line for line in page.splitlines() if line.startswith("paper.py:")} <= set(lines)
    assert lines[-1] in page.splitlines()
    assert main(["migrate", "check", str(NEW)]) == 0
    assert f"`{capsys.readouterr().out.strip()}`" in page
    assert f"exporter; {len(OLD.read_text().splitlines())} lines." in page


def test_what_rewrite_says(page: str) -> None:
    done = rewrite(OLD.read_text())
    assert f"# paper.py: {done.replaced} places changed, {done.notes} notes." in page.splitlines()


def test_changed_lines_stand_in_the_programs(page: str) -> None:
    changes = [line for block in re.findall(r"```diff\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    old, new = OLD.read_text().splitlines(), NEW.read_text().splitlines()
    assert [line for line in changes if line.startswith("-") and line[1:] not in old] == []
    assert [line for line in changes if line.startswith("+") and line[1:] not in new] == []
    assert len(changes) > 15


@pytest.mark.parametrize(
    "attempt", ["canned_as_it_was", pytest.param("canned_with_its_reduction", marks=pytest.mark.slow)]
)
def test_where_attempts_part(attempt: str, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    pair = next(pair for pair in PAIRS if (pair.program, pair.function) == ("paper", "canned"))
    new = f"{PROOFS / 'new_paper.py'}:{attempt}"
    assert main(["migrate", "prove", pair.old, new, "--recorded", str(pair.recorded)]) == 3
    found = re.search(r"The first to diverge is [\w ]+: [\w/]+", capsys.readouterr().out)
    assert found is not None
    assert f" {found[0]}, by ..." in page
