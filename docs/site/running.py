"""Finds a running example of each public class and function.

It is in the docstring, in a Python block of a page, or in the docstring of another name: the session `docs` executes
all of these. A record that a function with an example returns is shown by the example of that function.
"""

from __future__ import annotations

import ast
import doctest
import functools
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from docs.site.names import ROOT, PublicName, describe, value_of
from docs.site.places import headings, place_of

_BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_TEXT = re.compile(r"^```text\n((?:from|import) .*?)^```$", re.DOTALL | re.MULTILINE)
#: Pages with programs for engines that are not installed here; sessions of their own run these calls.
_OF_ENGINES = {"docs/scoring.md": "scoring_engines, mlflow_flavor"}


@dataclass(frozen=True, kw_only=True)
class Block:
    """One Python block of a page.

    Args:
        page: the file, relative to the root.
        heading: the words of the heading above it, and the name of that place in links.
        code: the program.
    """

    page: str
    heading: tuple[str, str]
    code: str


@dataclass(frozen=True, kw_only=True)
class Example:
    """Where a name is shown in a program that runs.

    Args:
        words: what the site writes about it; empty where the docstring itself has the example.
        link: the target, as a page of the reference links to it.
    """

    words: str = ""
    link: str = ""


def blocks(page: str, text: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    places = list(headings(text))
    found: list[Block] = []
    of_engines = _TEXT.finditer(text) if page in _OF_ENGINES else ()
    for match in (*_BLOCK.finditer(text), *of_engines):
        above = next((heading for at, *heading in reversed(places) if at < match.start()), ["", ""])
        found.append(Block(page=page, heading=(above[0], above[1]), code=match[1]))
    return found


def used(program: str, aliases: dict[str, str]) -> set[str]:
    """The dotted paths that a program names.

    Args:
        program: its text.
        aliases: what its names stand for; the imports of the program are added.
    """
    nodes = list(ast.walk(ast.parse(program)))
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                top = one.name.partition(".")[0]
                aliases[one.asname or top] = one.name if one.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            aliases |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    written = (ast.unparse(node).partition(".") for node in nodes if isinstance(node, (ast.Name, ast.Attribute)))
    return {f"{aliases[root]}.{rest}".rstrip(".") for root, _, rest in written if root in aliases}


@functools.cache
def on_pages() -> dict[str, Block]:
    """The shortest block that names each dotted path."""
    found: dict[str, Block] = {}
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("plugins/*/README.md"))]:
        aliases: dict[str, str] = {}
        for block in blocks(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")):
            for name in used(block.code, aliases):
                if name not in found or len(block.code) < len(found[name].code):
                    found[name] = block
    return found


def examples(modules: Mapping[str, Iterable[str]]) -> dict[str, Example]:
    """A running example of each class and function, by where it is defined.

    Args:
        modules: the public names of every module.
    """
    listed = [describe(module, name) for module, names in modules.items() for name in names]
    of_path = {one.path: one.canonical for one in listed if one.canonical}
    found = {one.canonical: Example() for one in listed if one.canonical and _programs(one)}
    for path, block in on_pages().items():
        if path in of_path:
            found.setdefault(of_path[path], _of_block(block))
    of_path |= {canonical: canonical for canonical in of_path.values()}
    for one in listed:
        for program in _programs(one):
            for path in used(program, _names_of(one)) & of_path.keys():
                found.setdefault(of_path[path], Example(words=f"with `{one.path}`", link=_link(one)))
    return {**dict(_returned(listed, found)), **found}


def _names_of(one: PublicName) -> dict[str, str]:
    """What the names of the module stand for where an object is defined: its examples use them without an import."""
    module = sys.modules[value_of(one.module, one.name).__module__]
    plain = {name: value for name, value in vars(module).items() if inspect.isclass(value) or inspect.isfunction(value)}
    return {name: f"{value.__module__}.{value.__qualname__}" for name, value in plain.items()}


def _programs(one: PublicName) -> list[str]:
    """The examples in the docstrings of a name and its public members."""
    value = value_of(one.module, one.name)
    inner = vars(value).items() if inspect.isclass(value) else ()
    texts = [value.__doc__, *(member.__doc__ for name, member in inner if not name.startswith("_"))]
    read = doctest.DocTestParser().get_examples
    found = (read(inspect.cleandoc(text)) for text in texts if isinstance(text, str) and ">>>" in text)
    return ["".join(example.source for example in program) for program in found]


def _returned(listed: Iterable[PublicName], found: Mapping[str, Example]) -> Iterator[tuple[str, Example]]:
    """Classes without an example that a function, method or attribute with one returns."""
    waiting = {one.name: one for one in listed if one.canonical and one.canonical not in found}
    for one in listed:
        if one.canonical in found:
            for member, told in _results(value_of(one.module, one.name)):
                for name in waiting.keys() & set(re.findall(r"\w+", told)):
                    if waiting[name].canonical.partition(".")[0] in (one.canonical.partition(".")[0], "estimator_core"):
                        shown = f"with `{one.path}{member}`, which returns it"
                        yield waiting[name].canonical, Example(words=shown, link=_link(one))


def _results(value: object) -> Iterator[tuple[str, str]]:
    """What a function, or each public member of a class, returns or holds, as its annotation says it."""
    if not inspect.isclass(value):
        yield "", str(getattr(value, "__annotations__", {}).get("return", ""))
        return
    for name, told in vars(value).get("__annotations__", {}).items():
        yield f".{name}", str(told)
    for name, member in vars(value).items():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if not name.startswith("_"):
            yield f".{name}", str(getattr(function, "__annotations__", {}).get("return", ""))


def _of_block(block: Block) -> Example:
    words, anchor = block.heading
    return Example(words=words, link=f"../{place_of(block.page)}#{anchor}")


def _link(one: PublicName) -> str:
    package = one.module.partition(".")[0]
    return f"{one.module if package == 'estimator_core' else package}.md#name-{one.path}"
