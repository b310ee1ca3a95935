"""Writes the pages of the reference: one for each public module, with every name on it."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from textwrap import shorten
from types import ModuleType

from docs.site import running
from docs.site.names import (
    FACADE,
    PublicName,
    core_modules,
    describe,
    homes,
    package_modules,
    plugin_packages,
    value_of,
)

REPOSITORY = "https://github.com/estimator-core/estimator-core"
TREE = f"{REPOSITORY}/blob/main/"
RAW = f"{REPOSITORY}/raw/main/"  # pictures


@functools.cache
def examples() -> dict[str, running.Example]:
    """A running example of each public class and function, by where it is defined."""
    modules = core_modules()
    for package in plugin_packages():
        modules |= package_modules(package)
    return running.examples(modules)


@functools.cache
def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    core = core_modules()
    known = homes(core)
    found = {f"{module}.md": page(module, names, known) for module, names in core.items()}
    for package in plugin_packages():
        modules = package_modules(package)
        inside = homes(modules)
        parts = [page(module, names, inside) for module, names in modules.items()]
        found[f"{package}.md"] = "\n".join(parts)
    return found


def page(module: str, names: list[str], known: dict[str, str]) -> str:
    """The reference of one module: a table of its names, and each name in full that no other module owns.

    Args:
        module: the module that users import.
        names: its public names.
        known: where each name is documented in full, by its path (`homes`).
    """
    described = [describe(module, name) for name in names]
    doc = inspect.getdoc(importlib.import_module(module)) or ""
    parts = [f"# {module}\n", f"{doc.partition(chr(10) * 2)[0]}\n", *_table(described, known)]
    parts += (_entry(one) for one in described if known[one.path] == one.path and not _is_module(one))
    return "\n".join(parts)


def _is_module(name: PublicName) -> bool:
    return isinstance(value_of(name.module, name.name), ModuleType)


def _table(names: list[PublicName], known: dict[str, str]) -> Iterator[str]:
    yield "| name | contract |\n|---|---|"
    for one in names:
        target = _page_of(one.path) if _is_module(one) else _link(known[one.path], one.module)
        summary = one.summary.replace("|", "\\|")
        yield f'| <span id="name-{one.path}"></span>[`{one.name}`]({target}) | {summary} |'
    yield ""


def _page_of(module: str) -> str:
    """The page of a module; the faces of whole packages are on the page of the package."""
    packages = {f"{FACADE}.learn_runner": "estimator_experiment", f"{FACADE}.testing": "estimator_testing"}
    return f"{packages.get(module, module)}.md"


def _link(home: str, module: str) -> str:
    owner = home.rpartition(".")[0]
    return f"#{home}" if owner == module else f"{owner}.md#{home}"


def _entry(one: PublicName) -> str:
    if not one.canonical:
        value = repr(value_of(one.module, one.name))
        return f"## {one.name} {{ #{one.path} }}\n\n{one.summary}\n\n```text\n{shorten(value, 300)}\n```\n"
    source = f"Source: [{one.source.partition('#')[0]}]({TREE}{one.source})\n" if one.source else ""
    shown = examples().get(one.canonical)
    example = f"Example: [{shown.words}]({shown.link})\n\n" if shown and shown.link else ""
    options = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
    return f"## {one.name} {{ #{one.path} }}\n\n::: {one.canonical}\n{options}\n{example}{source}"
