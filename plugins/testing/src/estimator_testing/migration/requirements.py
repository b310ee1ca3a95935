"""Finds the packages that a plugin needs besides the core, and those that it does not require yet."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from estimator_testing._core import MOVED, MOVED_MODULES, normalise
from estimator_testing.migration.paths import CORE, packages, whole_module

_HOUSE = {package: package.replace("_", "-") for package in packages()} | {
    module.partition(".")[0]: distribution for module, distribution in (*MOVED.values(), *MOVED_MODULES.values())
}


def lacking(distribution: str, files: Iterable[Path]) -> list[str]:
    """Returns distributions that files need for names that left the core, but that the plugin does not require.

    Args:
        distribution: the distribution of the plugin.
        files: the sources and tests of the plugin.
    """
    required = {normalise(re.split(r"[^\w.-]", one)[0]) for one in metadata.requires(distribution) or ()}
    needed = {one for file in files for one in distributions_of(file.read_text(encoding="utf-8"))}
    return sorted(one for one in needed if normalise(one) not in (*required, normalise(distribution)))


def distributions_of(text: str) -> set[str]:
    """Returns the former parts of the core that a program uses, by their new names or by their old ones.

    Example:
        >>> sorted(
        ...     distributions_of("import estimator_core as ec; from estimator_inputs import csv_input_fn; ec.HParams")
        ... )
        ['estimator-experiment', 'estimator-inputs']
        >>> distributions_of("from estimator_core.plan import plan_run"), distributions_of("import estimator_plan")
        ({'estimator-plan'}, {'estimator-plan'})
    """
    found: set[str] = set()
    facades = {CORE}
    for node in ast.walk(tree := ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {_of_path(alias.name) for alias in node.names}
            facades |= {alias.asname for alias in node.names if alias.name == CORE and alias.asname is not None}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {_of_path(f"{node.module}.{alias.name}") for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (path := ast.unparse(node)).partition(".")[0] in facades:
            found.add(_of_path(f"{CORE}.{path.partition('.')[2]}"))
    return found - {""}


def _of_path(path: str) -> str:
    """Returns the distribution of a module or name, or "" for names of the core and of other projects."""
    top, _, rest = path.partition(".")
    if top != CORE:
        return _HOUSE.get(top, "")
    module = rest.partition(".")[0]
    if (home := whole_module(f"{CORE}.{module}")) is not None:
        return _HOUSE[home.partition(".")[0]]
    return MOVED_MODULES[module][1] if module in MOVED_MODULES else MOVED.get(rest, ("", ""))[1]
