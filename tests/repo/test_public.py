"""Tests that the public names of the core are those of docs/public.txt, and that code outside the core uses only these.

A change of the public names is a line in a diff. `python tests/repo/test_public.py` rewrites the list.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_core._moved import MOVED

ROOT = Path(__file__).parents[2]
CORE = ROOT / "estimator_core"
LIST = ROOT / "docs" / "public.txt"
# Modules whose content is in a separate package do not have their own list.
FACES_OF_PACKAGES = ("estimator_core.learn_runner", "estimator_core.testing")
# The core's own test kit: its suites drive hooks, scopes and plugins like the core. This file names all that it uses.
THE_KIT = "plugins/testing/src/estimator_testing/_core.py"
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)

PROMPTED = re.compile(r"^ *>>> ((?:from|import) .*)$", flags=re.MULTILINE)


def public_modules() -> list[str]:
    """Returns every module of the core without an underscore in its path."""
    return sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in CORE.rglob("*.py") if is_public(path)
    )


def is_public(path: Path) -> bool:
    return not any(part.startswith("_") for part in path.relative_to(CORE).parts)


def names_of(module: str) -> list[str]:
    """Returns the names that a module lists, and those that its `__getattr__` takes from separate packages."""
    face = module.removeprefix("estimator_core.") + "."
    moved = {name.removeprefix(face) for name in MOVED if name.startswith(face)}
    return sorted({*importlib.import_module(module).__all__, *moved})


def written() -> dict[str, list[str]]:
    """Returns the list as committed: each line has a module and then its names."""
    lines = (line for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return {module: names.split() for module, _, names in (line.partition(":") for line in lines)}


def facade() -> list[str]:
    """Returns the names of `estimator_core` itself, each of which `__init__.pyi` types."""
    imports = (node for node in ast.parse((CORE / "__init__.pyi").read_text()).body if isinstance(node, ast.ImportFrom))
    return sorted(alias.asname or alias.name for node in imports for alias in node.names)


TYPED = frozenset(facade())


def current() -> dict[str, list[str]]:
    modules = [module for module in public_modules() if module not in FACES_OF_PACKAGES]
    return {"estimator_core": sorted(TYPED), **{module: names_of(module) for module in modules}}


def outside() -> Iterator[tuple[str, str]]:
    """Yields the sources outside the core: the path and the text."""
    for pattern in ("plugins/*/src/**/*.py", "examples/**/*.py", "benchmarks/**/*.py", "plugins/*/src/**/*.py.tmpl"):
        for path in ROOT.glob(pattern):
            yield str(path.relative_to(ROOT)), path.read_text()
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")]:
        text = path.read_text()
        yield from ((str(path.relative_to(ROOT)), block) for block in PYTHON_BLOCK.findall(text))
        yield str(path.relative_to(ROOT)), "\n".join(PROMPTED.findall(text))


def private_uses(text: str, public: dict[str, list[str]]) -> list[str]:
    """Returns imports of the core's private modules, and uses of names that no public module lists."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a template with placeholders, or a fragment of a document
        return re.findall(r"estimator_core\._\w+", text)
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("estimator_core._")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "estimator_core":
            found += [
                f"{node.module}.{alias.name}" for alias in node.names if not _listed(node.module, alias.name, public)
            ]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            module, holder = f"estimator_core.{node.value.attr}", node.value.value  # ec.metrics.mean
            if isinstance(holder, ast.Name) and holder.id == "ec" and module in public:
                found += [f"{module}.{node.attr}"] * (node.attr not in public[module])
    return found


def _listed(module: str | None, name: str, public: dict[str, list[str]]) -> bool:
    assert module is not None
    if module in FACES_OF_PACKAGES or f"{module}.{name}" in {*public, *FACES_OF_PACKAGES}:
        return True
    if module == "estimator_core":
        return name == "__version__" or (not name.startswith("_") and name in TYPED)
    return name in public.get(module, ())


def test_the_list_is_what_the_modules_say() -> None:
    assert current() == written()


def test_every_listed_name_exists() -> None:
    missing = [
        f"{module}.{name}"
        for module, names in written().items()
        for name in names
        if not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


def test_nobody_outside_uses_a_private_name() -> None:
    public = written()
    found = [(where, uses) for where, text in outside() if (uses := private_uses(text, public))]
    assert [one for one in found if one[0] != THE_KIT] == []


@pytest.mark.parametrize(
    "text",
    [
        "from estimator_core._loop.run import LoopRun",
        "import estimator_core._step",
        "from estimator_core import _moved",
        "from estimator_core.export import datetime",
        "from estimator_core.hooks import Callable",
        "import estimator_core as ec\nec.metrics.HostChunk()",
        "def late():\n    from estimator_core._plugins import registry",
    ],
)
def test_a_private_use_is_found(text: str) -> None:
    assert private_uses(text, written())


if __name__ == "__main__":
    head = "# The public names of the core, module by module; `python tests/repo/test_public.py` writes this list.\n"
    LIST.write_text(head + "".join(f"{module}: {' '.join(names)}\n" for module, names in current().items()))
