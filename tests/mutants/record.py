"""Defines a mutant: one small change of a rule, and the tests that must detect it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOMS = Path(__file__).parent / "rooms"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of the source that breaks a rule.

    Args:
        name: a unique name that says what the mutated code does wrong, in words joined by hyphens.
        guarantee: a row of docs/guarantees.md: "trap 9", "fault 3" or "rule 5".
        file: the source, from the root of the repository.
        old: a piece of the source that occurs exactly once.
        new: the text that replaces it.
        tests: names of tests of the guarantee, optionally with a case. None named: all of them.
        in_cut: False if its tests start processes, wait, or take more than a few seconds. A cut then omits it.

    Example:
        >>> Mutant(name="adds-one", guarantee="rule 1", file="a.py", old="x", new="x + 1").mutated("y = x")
        'y = x + 1'
    """

    name: str
    guarantee: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    in_cut: bool = True

    def mutated(self, source: str) -> str:
        """Returns the source with the change.

        Raises:
            StaleMutantError: `old` does not occur exactly once, the change is empty, or the result is not valid Python.
        """
        count = source.count(self.old)
        if count != 1:
            raise StaleMutantError(f"{self.name}: `old` occurs {count} times in {self.file}, not once: {self.old!r}")
        if self.old == self.new:
            raise StaleMutantError(f"{self.name}: `old` and `new` are the same")
        changed = source.replace(self.old, self.new)
        if not self.file.endswith(".py"):  # a template of a script
            return changed
        try:
            compile(changed, self.file, "exec")
        except SyntaxError as error:
            raise StaleMutantError(f"{self.name}: {self.file} is no Python with it ({error})") from error
        return changed


class StaleMutantError(Exception):
    """A mutant no longer fits the sources."""


def all_mutants() -> dict[str, tuple[Mutant, ...]]:
    """Returns the mutants of this repository by room. Each room is a module."""
    names = sorted(path.stem for path in ROOMS.glob("*.py"))
    return {name: importlib.import_module(f"tests.mutants.rooms.{name}").MUTANTS for name in names}


def spread(mutants: Sequence[Mutant], most: int) -> list[Mutant]:
    """Returns at most the given number of mutants, evenly spaced. The selection is always the same.

    Example:
        >>> made = [Mutant(name=name, guarantee="rule 1", file="a.py", old="x", new="y") for name in "abcdef"]
        >>> [mutant.name for mutant in spread(made, 3)]
        ['a', 'c', 'e']
    """
    count = min(most, len(mutants))
    return [mutants[number * len(mutants) // count] for number in range(count)]


def own_tests(mutant: Mutant, beside: Iterable[str]) -> tuple[str, ...]:
    """Returns the tests to run, as arguments of pytest.

    Args:
        mutant: the mutant to test.
        beside: `file::test` of every test of its guarantee.

    Raises:
        StaleMutantError: the guarantee has no test of that name.
    """
    by_name = {test.partition("::")[2]: test for test in beside}
    missing = [name for name in mutant.tests if name.partition("[")[0] not in by_name and name not in by_name]
    if missing or not by_name:
        raise StaleMutantError(f"{mutant.name}: beside {mutant.guarantee} there is no test {missing or ''}")
    if not mutant.tests:
        return tuple(by_name.values())
    return tuple(by_name[name] if name in by_name else _case(by_name, name) for name in mutant.tests)


def _case(by_name: dict[str, str], name: str) -> str:
    """Returns a case of a test that the guarantee lists as a whole."""
    test, bracket, case = name.partition("[")
    return by_name[test] + bracket + case
