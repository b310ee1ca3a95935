"""Puts one fault at a time into sound components of every kind, and tells which test of which suite notices.

`python -m tests.mutants.suites.run [--only NAME_OR_KIND ...] [--list] [--write]`. Components are the packages that
`estimator new-plugin` writes, and the sound ones of the tests of the kit. `--write` writes the table of the docs.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from estimator_core.plugins import KINDS
from estimator_testing.cli.scaffold import write_package
from tests.mutants.record import Mutant
from tests.mutants.run import ROOT, Outcome, run_all
from tests.mutants.suites import learning, reading, running, serving

MUTANTS = (*running.MUTANTS, *learning.MUTANTS, *reading.MUTANTS, *serving.MUTANTS)
PAGE = ROOT / "docs" / "plugins" / "mutation_score.md"
#: The share of the faults of each kind that its suite has to notice.
TARGET = 0.9
_SOUND = (
    ("adapter", "test_module_adapter_suite.py::TestAffineAdapter"),
    ("exporter", "test_exporter_suite.py::TestSoundExporter"),
    ("hook", "test_legitimate.py::TestBudgetHook"),
    ("hook", "test_legitimate.py::TestTrackerHook"),
    ("input", "test_legitimate.py::TestRowsOfSQLite"),
    ("input", "test_legitimate.py::TestMembersOfTar"),
)
_TITLE = """# What the suites notice

Each row is a small fault in a sound component. The suite of its kind runs against it. The table shows the first test
that fails. `uv run nox -s suite_mutants -- --write` writes this page.

"""


def add_packages(folder: Path) -> None:
    """Writes a package of every kind beside the plugins, as an editable installation leaves it."""
    for kind in KINDS:
        name, package = f"acme-{kind.replace('_', '-')}", f"acme_{kind}"
        (folder / "plugins").mkdir(exist_ok=True)
        write_package(name, kind, folder / "plugins")
        metadata = folder / "plugins" / name / "src" / f"{package}-0.1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{package} = {package}.plugin\n")


def suites() -> dict[str, tuple[str, ...]]:
    """The classes of tests that examine the components of a kind, as pytest takes them; that of the template first."""
    with tempfile.TemporaryDirectory() as scratch:
        add_packages(Path(scratch))
        found: dict[str, tuple[str, ...]] = {}
        for kind in KINDS:
            file = f"plugins/acme-{kind.replace('_', '-')}/tests/test_{kind}.py"
            match = re.search(r"^class (Test\w+)\(\w+Suite\)", Path(scratch, file).read_text(), re.MULTILINE)
            assert match is not None, file
            sound = (f"plugins/testing/tests/{suite}" for one, suite in _SOUND if one == kind)
            found[kind] = (f"{file}::{match[1]}", *sound)
        return found


def chosen_by(only: Sequence[str], beside: dict[str, tuple[str, ...]]) -> list[Mutant]:
    """The mutants of these names or kinds, all without any; those of a template know its suite.

    Raises:
        SystemExit: a name is neither a mutant's nor a kind's.
    """
    if unknown := [name for name in only if name not in KINDS and name not in {mutant.name for mutant in MUTANTS}]:
        raise SystemExit(f"There is no mutant and no kind {', '.join(unknown)}. Kinds: {', '.join(sorted(KINDS))}.")
    return [
        mutant if mutant.tests else replace(mutant, tests=(beside[mutant.guarantee][0].partition("::")[2],))
        for mutant in MUTANTS
        if not only or mutant.guarantee in only or mutant.name in only
    ]


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a page: the score of each kind, and what killed each mutant."""
    rows = ["| kind | suite | faults | noticed | score |", "|---|---|---|---|---|"]
    for kind in sorted({outcome.mutant.guarantee for outcome in outcomes}):
        own = [outcome for outcome in outcomes if outcome.mutant.guarantee == kind]
        noticed = sum(killed(outcome) for outcome in own)
        rows.append(f"| {kind} | `{KINDS[kind].suite}` | {len(own)} | {noticed} | {noticed / len(own):.2f} |")
    noticed = sum(map(killed, outcomes))
    rows.append(f"| all | | {len(outcomes)} | {noticed} | {noticed / len(outcomes):.2f} |")
    rows += ["", "| fault | the first test that fails |", "|---|---|"]
    rows += [f"| {outcome.mutant.name} | {_by(outcome)} |" for outcome in outcomes]
    return _TITLE + "\n".join(rows) + "\n"


def killed(outcome: Outcome) -> bool:
    """Whether the suite has noticed the fault."""
    return outcome.status in ("killed", "TIMED OUT")


def _by(outcome: Outcome) -> str:
    match = re.search(r"::(test_\w+)", outcome.why)
    return (f"`{match[1]}`" if match else outcome.why[:60]) if killed(outcome) else "none"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 1 if a score is below the target, or a mutant does not fit its component any more."""
    parser = argparse.ArgumentParser(description="Put faults into sound components, and see which suite notices.")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="mutants or kinds")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    beside = suites()
    chosen = chosen_by(given.only, beside)
    if given.list:
        print("\n".join(f"{mutant.guarantee:18} {mutant.name}" for mutant in chosen))
        return 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        add_packages(Path(scratch))
        outcomes = run_all(ROOT, chosen, beside, Path(scratch))
    page = table(outcomes)
    print(page)
    for outcome in outcomes:
        if not killed(outcome):
            print(f"{outcome.status}: {outcome.mutant.name} ({outcome.mutant.file}): {outcome.why[-300:]}")
    print(f"{time.monotonic() - begun:.0f} s")
    if given.write:
        PAGE.write_text(page, encoding="utf-8")
    stale = [outcome for outcome in outcomes if outcome.status in ("STALE", "BROKEN")]
    kinds = {outcome.mutant.guarantee for outcome in outcomes}
    low = [kind for kind in kinds if score(outcomes, kind) < TARGET]
    return 1 if stale or low else 0


def score(outcomes: Sequence[Outcome], kind: str) -> float:
    """The share of the faults of a kind that its suite has noticed."""
    own = [killed(outcome) for outcome in outcomes if outcome.mutant.guarantee == kind]
    return sum(own) / len(own)


if __name__ == "__main__":
    sys.exit(main())
