"""Puts one fault at a time into sound components of every kind, and reports which test of which suite detects it.

`python -m tests.mutants.suites.run [--only NAME_OR_KIND ...] [--list] [--write]`. Components are the packages that
`estimator new-plugin` writes, and the sound components of the test kit's tests. `--write` writes their rows to the
docs.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from estimator_core.plugins import KINDS, default_plugins
from estimator_testing.cli.scaffold import write_package
from tests.mutants.record import Mutant
from tests.mutants.run import ROOT, Outcome, run_all
from tests.mutants.suites import defined, learning, reading, running, serving

#: The kinds of the core, and those of our plugins whose suites are as quick.
SCORED = (*KINDS, "command", "schema", "launcher", "report_section", "program_format")
MUTANTS = (*running.MUTANTS, *learning.MUTANTS, *reading.MUTANTS, *serving.MUTANTS, *defined.MUTANTS)
PAGE = ROOT / "docs" / "plugins" / "mutation_score.md"
#: The share of its faults that each suite has to detect.
TARGET = 0.9
_NOBODY = "none"
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
that fails. "none" means that the suite passes the fault. `uv run nox -s suite_mutants -- --write` writes this page.

"""


def add_packages(folder: Path) -> None:
    """Writes a package of every kind next to the plugins, in the form of an editable installation."""
    (folder / "plugins").mkdir(exist_ok=True)
    for kind in SCORED:
        add_package(folder / "plugins", f"acme-{kind.replace('_', '-')}", kind)


def add_package(folder: Path, name: str, kind: str) -> None:
    """Writes a package of a kind into a folder, in the form of an editable installation."""
    package = name.replace("-", "_")
    write_package(name, kind, folder)
    metadata = folder / name / "src" / f"{package}-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{package} = {package}.plugin\n")


def suites() -> dict[str, tuple[str, ...]]:
    """Returns the test classes that examine each kind of component, as arguments of pytest. The template's is first."""
    with tempfile.TemporaryDirectory() as scratch:
        add_packages(Path(scratch))
        found: dict[str, tuple[str, ...]] = {}
        for kind in SCORED:
            file = f"plugins/acme-{kind.replace('_', '-')}/tests/test_{kind}.py"
            match = re.search(r"^class (Test\w+)\(\w+Suite\)", Path(scratch, file).read_text(), re.MULTILINE)
            assert match is not None, file
            sound = (f"plugins/testing/tests/{suite}" for one, suite in _SOUND if one == kind)
            found[kind] = (f"{file}::{match[1]}", *sound)
        return found


def chosen_by(only: Sequence[str], beside: dict[str, tuple[str, ...]]) -> list[Mutant]:
    """Returns the mutants of these names or kinds, or all mutants. Mutants of a template name its suite.

    Raises:
        SystemExit: a name is neither a mutant nor a kind.
    """
    if unknown := [name for name in only if name not in SCORED and name not in {mutant.name for mutant in MUTANTS}]:
        raise SystemExit(f"There is no mutant and no kind {', '.join(unknown)}. Kinds: {', '.join(sorted(SCORED))}.")
    return [
        mutant if mutant.tests else replace(mutant, tests=(beside[mutant.guarantee][0].partition("::")[2],))
        for mutant in MUTANTS
        if not only or mutant.guarantee in only or mutant.name in only
    ]


def table(noticed_by: Mapping[str, str]) -> str:
    """Returns the page of the tests that detected each fault, with the score of each kind.

    Args:
        noticed_by: the first test that fails, by the name of the mutant, or "none" if no test fails.
    """
    rows = ["| kind | suite | faults | noticed | score |", "|---|---|---|---|---|"]
    kinds = default_plugins().kinds()
    listed = [mutant for mutant in MUTANTS if mutant.name in noticed_by]
    for kind in sorted({mutant.guarantee for mutant in listed}):
        own = [noticed_by[mutant.name] != _NOBODY for mutant in listed if mutant.guarantee == kind]
        suite = kinds[kind].suite.rpartition(":")[2]
        rows.append(f"| {kind} | `{suite}` | {len(own)} | {sum(own)} | {sum(own) / len(own):.2f} |")
    found = [noticed_by[mutant.name] != _NOBODY for mutant in listed]
    rows.append(f"| all | | {len(found)} | {sum(found)} | {sum(found) / len(found):.2f} |")
    rows += ["", "| fault | the first test that fails |", "|---|---|"]
    rows += [f"| {mutant.name} | {noticed_by[mutant.name]} |" for mutant in listed]
    return _TITLE + "\n".join(rows) + "\n"


def on_the_page(text: str) -> dict[str, str]:
    """Returns the entry of each fault on a page of `table`."""
    return dict(re.findall(r"^\| ([a-z][\w-]+) \| ([^|]+) \|$", text.partition("| fault |")[2], re.MULTILINE))


def below(outcomes: Sequence[Outcome]) -> list[str]:
    """Returns the kinds whose suites detect too few faults."""
    kinds = {outcome.mutant.guarantee for outcome in outcomes}
    own = {kind: [killed(outcome) for outcome in outcomes if outcome.mutant.guarantee == kind] for kind in kinds}
    return sorted(kind for kind, found in own.items() if sum(found) < TARGET * len(found))


def killed(outcome: Outcome) -> bool:
    """Returns whether the suite has detected the fault."""
    return outcome.status in ("killed", "TIMED OUT")


def _by(outcome: Outcome) -> str:
    match = re.search(r"::(test_\w+)", outcome.why)
    return (f"`{match[1]}`" if match else outcome.why[:60]) if killed(outcome) else _NOBODY


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 1 if the score of a suite is below the target, or if a mutant no longer fits."""
    parser = argparse.ArgumentParser(description="Put faults into sound components, and see which suite notices.")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="mutants or kinds")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--write", action="store_true", help=f"write the rows of these in {PAGE.relative_to(ROOT)}")
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
    found = {outcome.mutant.name: _by(outcome) for outcome in outcomes}
    print(table(found))
    for outcome in outcomes:
        if not killed(outcome):
            print(f"{outcome.status}: {outcome.mutant.name} ({outcome.mutant.file}): {outcome.why[-300:]}")
    print(f"{time.monotonic() - begun:.0f} s")
    if given.write:
        before = on_the_page(PAGE.read_text(encoding="utf-8"))  # the rows of faults that did not run this time
        PAGE.write_text(table(before | found), encoding="utf-8")
    stale = [outcome for outcome in outcomes if outcome.status in ("STALE", "BROKEN")]
    return 1 if stale or below(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
