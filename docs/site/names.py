"""The public names of every package, read from the sources and the list in docs/public.txt."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
FACADE = "estimator_core"


@dataclass(frozen=True, kw_only=True)
class PublicName:
    """A name that users may import.

    Args:
        module: where they import it from.
        name: what it is called there.
        summary: the first sentence of its documentation; empty for a value without any.
        canonical: the path where a class or function is defined; empty for a value.
        source: its file, relative to the root, and line; empty where it is a value.
    """

    module: str
    name: str
    summary: str
    canonical: str
    source: str

    @property
    def path(self) -> str:
        """Module and name."""
        return f"{self.module}.{self.name}"


def core_modules() -> dict[str, list[str]]:
    """The public modules of the core with their names, as docs/public.txt lists them."""
    lines = (ROOT / "docs" / "public.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.partition(":") for line in lines if not line.startswith("#"))
    return {module: names.split() for module, _, names in rows}


def plugin_packages() -> list[str]:
    """Import names of the plugins of this repository, in order."""
    return [f"estimator_{path.parent.name}" for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]


def package_modules(package: str) -> dict[str, list[str]]:
    """The public modules of a plugin with their names: the package, and each module that it exports."""
    found: dict[str, list[str]] = {}
    waiting = [package]
    while waiting:
        module = waiting.pop(0)
        names = exported(module)
        inner = [name for name in names if isinstance(value_of(module, name), ModuleType)]
        found[module] = [name for name in names if name not in inner]
        waiting += [f"{module}.{name}" for name in inner]
    return found


def exported(module: str) -> list[str]:
    """What a module exports: `__all__`, or what it imports under the same name and defines."""
    listed = getattr(importlib.import_module(module), "__all__", None)
    if listed is not None:
        return sorted(listed)
    file = Path(str(importlib.import_module(module).__file__))
    typed = file.with_suffix(".pyi")
    tree = ast.parse((typed if typed.exists() else file).read_text(encoding="utf-8"))
    return sorted({name for name in _exports(tree) if not name.startswith("_")})


def _exports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.asname == alias.name)
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name


@dataclass(frozen=True, kw_only=True)
class NotImported:
    """A name whose module needs a library that is not installed, as its sources describe it.

    Args:
        canonical: module and name.
        summary: the first sentence of its documentation.
        source: its file, relative to the root, and line.
    """

    canonical: str
    summary: str
    source: str


@functools.cache
def value_of(module: str, name: str) -> object:
    """What a name stands for; read from the sources where it cannot be imported."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return _read(module, name)


def _read(module: str, name: str) -> NotImported:
    file = Path(str(importlib.import_module(module).__file__)).with_suffix(".pyi")
    imports = [node for node in ast.walk(ast.parse(_text(file))) if isinstance(node, ast.ImportFrom)]
    (home,) = (str(node.module) for node in imports if name in {alias.asname for alias in node.names})
    package, _, rest = home.partition(".")
    source = Path(str(importlib.import_module(package).__file__)).parent / f"{rest.replace('.', '/')}.py"
    (found,) = (node for node in ast.parse(_text(source)).body if getattr(node, "name", "") == name)
    assert isinstance(found, (ast.ClassDef, ast.FunctionDef))
    doc = ast.get_docstring(found) or ""
    place = f"{source.resolve().relative_to(ROOT).as_posix()}#L{found.lineno}"
    return NotImported(canonical=f"{home}.{name}", summary=" ".join(doc.split("\n\n")[0].split()), source=place)


@functools.cache
def describe(module: str, name: str) -> PublicName:
    """One name with the first sentence of its documentation and its place in the sources."""
    value = value_of(module, name)
    if isinstance(value, NotImported):
        return PublicName(
            module=module, name=name, summary=value.summary, canonical=value.canonical, source=value.source
        )
    written = inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, ModuleType)
    doc = _own_doc(value) if written else _comment(module, name, value)
    summary = " ".join(doc.split("\n\n")[0].split())
    plain = inspect.isclass(value) or inspect.isroutine(value)
    canonical = f"{value.__module__}.{value.__qualname__}" if plain else ""
    return PublicName(
        module=module, name=name, summary=summary, canonical=canonical, source=_source(value) if written else ""
    )


def _own_doc(value: object) -> str:
    """What stands with a class, function or module itself: the words of a base class say nothing about it."""
    return inspect.cleandoc(value.__doc__ or "")


def _comment(module: str, name: str, value: object) -> str:
    """What stands with the assignment of a value: the comment `#:` above it, or the string below it."""
    package = module.partition(".")[0]
    folder = Path(str(importlib.import_module(package).__file__)).parent
    assignment = re.compile(rf"((?:^#: .*\n)*)^{name}(?::[^=\n]*)? = .*\n(?:\"\"\"(.*?)\"\"\")?", flags=re.MULTILINE)
    for file in sorted(folder.rglob("*.py")):
        match = assignment.search(_text(file))
        if match and any(match.groups()):
            where = ".".join([package, *file.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")
            if getattr(importlib.import_module(where), name, None) is value:
                return match[2] or " ".join(line.removeprefix("#: ") for line in match[1].splitlines())
    return ""


@functools.cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _source(value: object) -> str:
    try:
        file = Path(inspect.getsourcefile(value) or "").resolve()  # pyright: ignore[reportArgumentType]
        line = 1 if isinstance(value, ModuleType) else inspect.getsourcelines(value)[1]  # pyright: ignore[reportArgumentType]
    except (TypeError, OSError):
        return ""
    return f"{file.relative_to(ROOT).as_posix()}#L{line}" if file.is_relative_to(ROOT) else ""


def homes(modules: dict[str, list[str]]) -> dict[str, str]:
    """Where each object is documented in full, by the path of every name: facades point to the module that owns it."""
    owner: dict[int, str] = {}
    found: dict[str, str] = {}
    for module in sorted(modules, key=lambda module: (module == FACADE, module)):
        for name in modules[module]:
            value = value_of(module, name)
            path = f"{module}.{name}"
            plain = inspect.isclass(value) or inspect.isroutine(value)
            home = owner.setdefault(id(value), path) if plain else path
            if plain and str(getattr(value, "__module__", "")) == module:
                home = owner[id(value)] = path
            found[path] = home
    return {path: owner.get(id(_of_path(path)), home) for path, home in found.items()}


def _of_path(path: str) -> object:
    module, _, name = path.rpartition(".")
    return value_of(module, name)
