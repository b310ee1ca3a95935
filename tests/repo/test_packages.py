"""Tests that all packages share one version, agree on their ranges, and are listed wherever the root names packages."""

import ast
import importlib
import re
import tomllib
from pathlib import Path
from typing import Any


def version_in(module: Path) -> str:
    (value,) = (
        statement.value
        for statement in ast.parse(module.read_text()).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__"
    )
    return ast.literal_eval(value)


def ranges(project: dict[str, Any]) -> dict[str, str]:
    """Returns the version range of each required distribution, including those of extras."""
    listed = list(project["project"]["dependencies"])
    for extra in project["project"].get("optional-dependencies", {}).values():
        listed += extra
    found = {}
    for requirement in listed:
        name, bounds = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?(.*)", requirement).groups()
        assert bounds.startswith(">="), f"{requirement} has no lower bound"
        found[name.lower()] = bounds
    return found


def test_core_version(root: Path, root_project: dict[str, Any]) -> None:
    version = root_project["project"]["version"]
    assert version_in(root / "estimator_core" / "__init__.py") == version
    assert f"\n## {version}" in (root / "CHANGELOG.md").read_text()


def test_plugin_has_the_version_of_the_core(
    plugin_folder: Path, project: dict[str, Any], root_project: dict[str, Any]
) -> None:
    version = root_project["project"]["version"]
    assert project["project"]["version"] == version
    assert version_in(plugin_folder / "src" / f"estimator_{plugin_folder.name}" / "__init__.py") == version


def test_plugin_needs_the_minor_version_of_the_core(project: dict[str, Any], root_project: dict[str, Any]) -> None:
    major, minor, _ = map(int, root_project["project"]["version"].split("."))
    assert ranges(project)["estimator-core"] == f">={major}.{minor},<{major}.{minor + 1}"


def test_plugin_and_root_agree_on_ranges(project: dict[str, Any], root_project: dict[str, Any]) -> None:
    assert project["project"]["requires-python"] == root_project["project"]["requires-python"]
    core = ranges(root_project)
    shared = {name: bounds for name, bounds in ranges(project).items() if name in core}
    assert shared == {name: core[name] for name in shared}


def test_plugins_agree_among_themselves(root: Path) -> None:

    seen: dict[str, set[str]] = {}
    for path in root.glob("plugins/*/pyproject.toml"):
        for name, bounds in ranges(tomllib.loads(path.read_text())).items():
            seen.setdefault(name, set()).add(bounds)
    assert {name: found for name, found in seen.items() if len(found) > 1} == {}


def test_plugin_names(plugin_folder: Path, project: dict[str, Any]) -> None:
    name = plugin_folder.name
    assert project["project"]["name"] == f"estimator-{name.replace('_', '-')}"
    assert project["project"]["entry-points"] == {"estimator.plugins": {name: f"estimator_{name}.plugin"}}
    assert project["tool"]["uv"]["sources"]["estimator-core"] == {"workspace": True}
    package = plugin_folder / "src" / f"estimator_{name}"
    assert {"__init__.py", "plugin.py", "py.typed"} <= {path.name for path in package.iterdir()}
    assert list(plugin_folder.glob("tests/test_*.py")), "a plugin has tests"


def test_root_names_every_plugin(plugin_folder: Path, project: dict[str, Any], root_project: dict[str, Any]) -> None:
    name, package = project["project"]["name"], f"estimator_{plugin_folder.name}"
    group = [entry.split("[")[0] for entry in root_project["dependency-groups"]["plugins"]]
    assert name in group
    assert root_project["tool"]["uv"]["sources"][name] == {"workspace": True}
    linter = root_project["tool"]["importlinter"]
    contracts = {contract["id"]: contract for contract in linter["contracts"]}
    assert package in linter["root_packages"]
    assert package in contracts["core-imports-no-plugin"]["forbidden_modules"]
    assert package in contracts["plugins-independent"]["modules"]


def test_licence_travels_with_every_package(root: Path, plugin_folder: Path, project: dict[str, Any]) -> None:
    assert project["project"]["license-files"] == ["LICENSE"]
    assert (plugin_folder / "LICENSE").read_bytes() == (root / "LICENSE").read_bytes()


def test_no_framework_of_gigabytes_by_default(root_project: dict[str, Any]) -> None:
    groups = root_project["dependency-groups"]
    listed = [entry for group in groups.values() for entry in group if isinstance(entry, str)]
    names = {re.match(r"[\w.-]+", entry).group() for entry in listed + root_project["project"]["dependencies"]}
    assert not names & {"torch", "tensorflow", "tensorflow-cpu"}


def test_extras_have_the_names_that_pip_makes_of_them(root: Path, project: dict[str, Any]) -> None:
    """Versions of pip before 23.3 find only these names. With others, they install nothing and report success."""
    extras = project["project"].get("optional-dependencies", {})
    assert [name for name in extras if name != re.sub(r"[-_.]+", "-", name).lower()] == []
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("plugins/*/README.md")]
    sources = [*root.glob("plugins/*/src/**/*.py"), *root.glob("estimator_core/**/*.py")]
    wrong = re.compile(rf"{project['project']['name']}\[[\w,-]*_[\w,-]*\]")
    assert [path.name for path in [*pages, *sources] if wrong.search(path.read_text())] == []


#: The names whose packages are not dependencies of a plugin. A star import leaves them out.
OF_OTHERS = {"BeamScorer", "RayScorer"}


def test_a_star_imports_the_public_names(plugin_folder: Path) -> None:
    """A star import must include the names that are imported at their first use, but not `importlib` and `Any`."""
    (face,) = plugin_folder.glob("src/*/__init__.py")
    module = importlib.import_module(face.parent.name)
    found: dict[str, Any] = {}
    exec(f"from {module.__name__} import *", found)
    lazy = vars(module).get("_MODULE_OF") or vars(module).get("_HOME") or {}
    assert found.keys() - {"__builtins__"} == {*getattr(module, "__all__", ())} >= lazy.keys() - OF_OTHERS


def test_no_module_has_the_name_of_a_function_of_its_package(plugin_folder: Path) -> None:
    """Once such a module is imported, `from package import name` would return the module instead of the function."""
    (face,) = plugin_folder.glob("src/*/__init__.py")
    module = importlib.import_module(face.parent.name)
    homes = vars(module).get("_MODULE_OF") or vars(module).get("_HOME") or {}
    modules = {path.stem for path in face.parent.glob("*.py")} | {
        path.parent.name for path in face.parent.glob("*/__init__.py")
    }
    assert modules & homes.keys() == set()
