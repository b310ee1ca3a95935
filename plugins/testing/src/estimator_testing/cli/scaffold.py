"""Writes a plugin package from templates: `templates/common` for every kind, `templates/<kind>` for the component."""

from __future__ import annotations

import importlib.util
import keyword
import re
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from estimator_core.errors import ArgumentError
from estimator_core.hookspecs import PLUGIN_API
from estimator_core.plugins import Kind, PluginRecord, default_plugins
from estimator_testing._core import core_version

_TEMPLATES = resources.files("estimator_testing.cli") / "templates"
#: The example of each kind: the ending of its name in code, a line for lists, and requirements besides the core.
_EXAMPLES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "head": ("Head", "Regression with the Huber loss.", ("optax>=0.2.5",)),
    "hook": ("Hook", "Ends the training once the loss is low enough.", ()),
    "exporter": ("Exporter", "Exports once a metric has reached a goal.", ()),
    "format": ("Format", "Programs, weights and manifest in files with checksums.", ("flatbuffers>=24.3",)),
    "backend": ("Backend", "Some of the processors of this machine.", ()),
    "model": ("Regressor", "Regression with one hidden layer.", ("optax>=0.2.5",)),
    "input": ("input_fn", "Numbers from a text file, the label last.", ()),
    "transform": ("Scale", "Scales a feature by mean and deviation.", ()),
    "initial_values": ("Arrays", "Initial values from a file of arrays.", ()),
    "adapter": ("Adapter", "Dense layers of a library of one class.", ()),
    "checkpoint_policy": ("Policy", "Saves ever more rarely.", ()),
    "export_check": ("Check", "Allows for a difference of its own.", ()),
    "coordinator": ("Coordinator", "Processes that agree through files in a folder.", ()),
    "storage": ("Storage", "Objects in a file of SQLite.", ()),
}

_FILES: dict[str, str] = {
    "common/pyproject.toml.tmpl": "pyproject.toml",
    "common/README.md.tmpl": "README.md",
    "common/ci.yml.tmpl": ".github/workflows/tests.yml",
    "common/gitignore.tmpl": ".gitignore",
    "common/init.py.tmpl": "src/$package/__init__.py",
    "common/plugin.py.tmpl": "src/$package/plugin.py",
    "common/test_plugin.py.tmpl": "tests/test_plugin.py",
    "$kind/component.py.tmpl": "src/$package/$kind.py",
    "$kind/test_component.py.tmpl": "tests/test_$kind.py",
}


def write_package(name: str, kind: str, parent: Path) -> list[Path]:
    """Writes a plugin package into a new folder `parent/name`.

    Args:
        name: the name of the distribution: lower-case words joined by hyphens.
        kind: the kind of its component: one of `KINDS`, or one that an installed plugin defines with a scaffold.
        parent: an existing folder.

    Returns:
        The paths of the files.

    Raises:
        ArgumentError: the name cannot be used, the folder exists, or the kind or its scaffold does not exist.
    """
    values = _values(name, kind)
    folder = parent / name
    if folder.exists():
        raise ArgumentError(f"{folder} exists; choose another name or --dir")
    own = _templates_of(kind)
    extras = [one.name for one in own.iterdir() if one.name.startswith("extra_")]
    files = _FILES | {
        f"$kind/{one}": f"src/$package/{one.removeprefix('extra_').removesuffix('.tmpl')}" for one in extras
    }
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise ArgumentError(f"{folder} cannot be created ({error.strerror}); choose another --dir") from error
    written: list[Path] = []
    for template, target in files.items():
        folder_name, _, file = template.partition("/")
        text = ((own if folder_name == "$kind" else _TEMPLATES / folder_name) / file).read_text(encoding="utf-8")
        path = folder / Template(target).substitute(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).substitute(values), encoding="utf-8")
        written.append(path)
    typed = folder / "src" / values["package"] / "py.typed"
    typed.touch()
    return [*written, typed]


def _templates_of(kind: str) -> Traversable:
    """Returns the folder of templates of a kind: that of this package, or of the plugin that defines the kind."""
    if kind in _EXAMPLES:
        return _TEMPLATES / kind
    package, _, folder = _defined(kind)[0].scaffold.partition(":")
    return resources.files(package) / folder


def _example(kind: str) -> tuple[str, str, tuple[str, ...]]:
    """Returns the entry of `_EXAMPLES`. A package with a component of a plugin's kind requires that plugin."""
    if kind in _EXAMPLES:
        return _EXAMPLES[kind]
    record = _defined(kind)[1]
    return "".join(word.capitalize() for word in kind.split("_")), f"An example of a {kind}.", (record.owner,)


def _defined(kind: str) -> tuple[Kind, PluginRecord]:
    plugins = default_plugins()
    plugins.names(kind)  # raises for an unknown kind
    found, record = next((one, record) for record in plugins.records() for one in record.kinds if one.name == kind)
    if not found.scaffold:
        raise ArgumentError(f"{record.label} defines the kind {kind!r} without a scaffold; see its documentation")
    return found, record


def _values(name: str, kind: str) -> dict[str, str]:
    package = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(package):
        raise ArgumentError(f"name {name!r}: use lower-case words joined by hyphens, such as acme-heads")
    if package == "tests":
        raise ArgumentError(f"name {name!r}: the folder of the package's tests has this name; choose another name")
    if importlib.util.find_spec(package) is not None:
        raise ArgumentError(f"name {name!r}: a package {package!r} is already installed; choose another name")
    if taken := {name, package} & set(default_plugins().names(kind)):
        raise ArgumentError(f"name {name!r}: there is a {kind} {taken.pop()!r} already; choose another name")
    ending, summary, requirements = _example(kind)
    words = "".join(word.capitalize() for word in package.split("_"))
    core = _core_requirement()
    values = {
        "api": str(PLUGIN_API),
        "component": package,
        "constant": package.upper(),
        "dependencies": ", ".join(f'"{one}"' for one in (f"estimator-core{core}", *requirements)),
        "distribution": name,
        "kind": kind,
        "package": package,
        "scheme": name,
        "summary": summary,
        "target": f"{package}_{ending}" if ending.islower() else f"{words}{ending}",
        "test_requirements": ", ".join(f'"{one}{core}"' for one in ("estimator-testing", *_EXPORTING.get(kind, ()))),
    }
    usage = _templates_of(kind) / "usage.md.tmpl"
    return {**values, "usage": Template(usage.read_text(encoding="utf-8")).substitute(values)}


#: The packages with which the suites of these kinds export.
_EXPORTING: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("exporter", "export_check", "format"), ("estimator-signatures",)
)


def _core_requirement() -> str:
    """Returns the requirement of the core: from this version, below the next minor one.

    Example:
        >>> _core_requirement()
        '>=0.1,<0.2'
    """
    major, minor = (int(part) for part in (core_version() or "0.1").split(".")[:2])
    return f">={major}.{minor},<{major}.{minor + 1}"
