"""Tests that the page on the architecture matches the code: every file, name and room, the floors, and the four
ways.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "estimator_core"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
STATION = re.compile(r"^( *)(\S+\.py) +(\S+)", flags=re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./]+(?:\.py|\.pyi|\.md|\.txt|\.toml|/)")
NAME = re.compile(r"_*[A-Za-z]\w*")
# Quoted words that are not names of this repository.
NO_NAMES = frozenset({"estimator", "prefetch"})
WAYS = ("batch", "hook", "checkpoint", "RunConfig field")


@dataclass(frozen=True, kw_only=True)
class Station:
    """A line of a way: its indentation, the file, and the name in the file ("-" means the whole file)."""

    depth: int
    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path} {self.name}"


def way(page: str, title: str) -> list[Station]:
    """Returns the stations of a way."""
    block = page.split(f"### The way of a {title}\n")[1].split("```text\n")[1].split("```")[0]
    found = [Station(depth=len(indent), path=path, name=name) for indent, path, name in STATION.findall(block)]
    assert len(found) == len(block.splitlines())
    return found


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def definition(station: Station) -> ast.AST | None:
    """Returns the node that a station names, or None if it does not exist."""
    path = CORE / station.path
    node: ast.AST | None = parsed(path) if path.is_file() else None
    for part in [] if station.name == "-" else station.name.split("."):
        inside = ast.iter_child_nodes(node) if node is not None else ()
        kinds = (ast.ClassDef, ast.FunctionDef)
        node = next((one for one in inside if isinstance(one, kinds) and one.name == part), None)
    return node


def uses(station: Station, other: Station) -> bool:
    """Returns whether the code of a station names another one. For a whole file, returns whether the station's file
    imports it.
    """
    wanted = other.name.rpartition(".")[2]
    tree = definition(station)
    assert tree is not None
    if wanted == "-":
        module = "estimator_core." + other.path.removesuffix(".py").replace("/", ".")
        imports = (node for node in ast.walk(parsed(CORE / station.path)) if isinstance(node, ast.ImportFrom))
        return any(node.module == module for node in imports)
    return any(
        (isinstance(node, ast.Attribute) and node.attr == wanted)
        or (isinstance(node, ast.Name) and node.id == wanted)
        or (isinstance(node, ast.FunctionDef) and node.name == wanted and station.path == other.path)
        for node in ast.walk(tree)
    )


def faults_of_way(stations: list[Station]) -> list[str]:
    """Returns stations that do not exist, and those that the station above does not use."""
    missing = [f"{one} does not exist" for one in stations if definition(one) is None]
    if missing:
        return missing
    above: list[Station] = []
    found: list[str] = []
    for one in stations:
        above = [*(other for other in above if other.depth < one.depth), one]
        if len(above) > 1 and not uses(above[-2], one):
            found.append(f"{above[-2]} does not use {one}")
    return found


def tree() -> set[str]:
    """Returns the rooms and flat modules, as the page writes them."""
    rooms = {f"{path.name}/" for path in CORE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    return rooms | {path.name for path in CORE.glob("*.py")}


@functools.cache
def known_names() -> frozenset[str]:
    """Returns every name that the core defines."""
    found: set[str] = set()
    for path in CORE.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    return frozenset(found)


def faults_of_page(page: str) -> list[str]:
    """Returns files and names that do not exist, and parts of the tree that the page leaves out."""
    prose = re.sub(r"```text\n.*?```", "", page, flags=re.DOTALL)
    quoted = set(QUOTED.findall(prose))
    files = {text for text in quoted if FILE.fullmatch(text)}
    names = {text for text in quoted - files - NO_NAMES if NAME.fullmatch(text)}
    found = [f"{text} does not exist" for text in files if not any((base / text).exists() for base in (CORE, ROOT))]
    found += [f"nothing is called {name}" for name in names - known_names()]
    return sorted(found + [f"{part} is not on the page" for part in tree() - quoted])


def floors_of(page: str) -> list[list[str]]:
    """Returns the modules of each floor, highest first. Modules separated by a bar are independent."""
    block = page.split("## Floors\n")[1].split("```text\n")[1].split("```")[0]
    return [line.split() for line in block.splitlines()]


def floors_held() -> list[list[str]]:
    """Returns the floors in the configuration of import-linter."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "floors")
    return [re.sub(r"[():]", " ", layer).split() for layer in layers]


def test_files_names_and_rooms() -> None:
    assert faults_of_page(PAGE) == []


def test_floors() -> None:
    assert floors_of(PAGE) == floors_held()


@pytest.mark.parametrize("title", WAYS)
def test_each_station_uses_the_next(title: str) -> None:
    assert faults_of_way(way(PAGE, title)) == []


@pytest.mark.parametrize(
    ("title", "old", "new", "fault"),
    [
        ("batch", "train_loop ", "training_loop ", "_loop/train.py training_loop does not exist"),
        ("batch", "_loop/batches.py     feed", "_loop/fed.py         feed", "_loop/fed.py feed does not exist"),
        ("hook", "HookCalls.tell ", "HookCalls.restore ", "HookSchedule._release does not use"),
        ("checkpoint", "  _loop/resuming.py ", "  _loop/initial_state.py ", "does not exist"),
        ("checkpoint", "PendingCheckpoint ", "PendingCheckpoint.wait ", "does not"),
    ],
)
def test_a_wrong_way_is_found(title: str, old: str, new: str, fault: str) -> None:
    assert old in PAGE
    assert fault in "\n".join(faults_of_way(way(PAGE.replace(old, new), title)))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("`_cluster/`", "the cluster", "_cluster/ is not on the page"),
        ("`_roles.py` (", "`_rolls.py` (", "_rolls.py does not exist"),
        ("`RunContext`", "`CallContext`", "nothing is called CallContext"),
    ],
)
def test_a_wrong_page_is_found(old: str, new: str, fault: str) -> None:
    assert old in PAGE
    assert fault in faults_of_page(PAGE.replace(old, new))


def test_a_wrong_floor_is_found() -> None:
    assert floors_of(PAGE.replace("_step\nsummary\n", "summary\n_step\n")) != floors_held()
