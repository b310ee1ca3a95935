"""Writes a page for each plugin from its README, its pyproject.toml and the components that it declares."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from docs.site.changes import section
from docs.site.names import ROOT, plugin_packages
from estimator_core.plugins import Command, Component, Option


def pages() -> dict[str, str]:
    """The text of each page by the name of the plugin."""
    return {package.removeprefix("estimator_"): page(package) for package in plugin_packages()}


def page(package: str) -> str:
    """README, then what the package declares."""
    folder = ROOT / "plugins" / package.removeprefix("estimator_")
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (folder / "README.md").read_text(encoding="utf-8").rstrip()
    changes = section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), project["name"], "###")
    declared = ["\n## Declared by the package\n", *_declared(package, project)]
    return "\n".join([readme, *declared, "\n## Changes\n", changes, ""])


def _declared(package: str, project: dict[str, Any]) -> Iterator[str]:
    plugin = importlib.import_module(f"{package}.plugin")
    yield f"Distribution: `{project['name']}`. Import name: `{package}`. Reference: [{package}](../api/{package}.md).\n"
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    yield from _rows(("extra", "packages"), [(f"`{name}`", ", ".join(extras[name])) for name in extras])
    yield from _rows(("kind", "component", "summary"), [_component(one) for one in _records(plugin, "components")])
    yield from _rows(("command", "summary"), [_command(one) for one in _records(plugin, "commands")])
    yield from _rows(("option", "default", "meaning"), [_option(one) for one in _records(plugin, "options")])


def _records(plugin: object, what: str) -> Sequence[Any]:
    return getattr(plugin, f"estimator_{what}", tuple)()


def _component(one: Component) -> tuple[str, ...]:
    return (one.kind, f"`{one.name}`", one.summary)


def _command(one: Command) -> tuple[str, ...]:
    return (f"`estimator {one.name}`", one.summary)


def _option(one: Option) -> tuple[str, ...]:
    return (f"`{one.name}`", f"`{one.default!r}`", one.help)


def _rows(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
        yield from (f"| {' | '.join(row)} |" for row in rows)
        yield ""
