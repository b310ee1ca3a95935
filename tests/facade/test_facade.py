"""Tests of the facade: every public name is imported at its first use, and the stub types it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import estimator_core as ec
from estimator_core._moved import MOVED

STUB = Path(ec.__file__).with_suffix(".pyi")


def stub_names() -> set[str]:
    names: set[str] = set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def own_names(moved: Iterable[str]) -> set[str]:
    """Returns the moved names of `estimator_core` itself, without those of its modules."""
    return {name for name in moved if "." not in name}


def test_the_stub_lists_exactly_the_public_names() -> None:
    public = {name for name in dir(ec) if not name.startswith("_")}
    imported_elsewhere = {name for name in public if getattr(ec, name).__class__.__name__ == "module"} - stub_names()
    assert (public - imported_elsewhere) | own_names(
        MOVED
    ) == stub_names()  # a moved name is listed where it is installed


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.plugins if name in MOVED else ()) for name in sorted(stub_names())]
)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    assert getattr(ec, name).__doc__


def test_dir_shows_public_names_only() -> None:
    _ = ec.RunConfig, ec.metrics  # earlier uses do not matter
    assert set(dir(ec)) - stub_names() == {"__version__"}
    assert sorted(dir(ec)) == sorted(set(dir(ec)))


def test_the_signature_of_a_run_config_is_that_of_its_fields() -> None:
    parameters = inspect.signature(ec.RunConfig).parameters
    assert list(parameters) == [field.name for field in dataclasses.fields(ec.RunConfig) if field.init]
    assert parameters["debug"].default is False


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Estimatr'"):
        _ = ec.Estimatr


def test_importing_the_core_imports_nothing_heavy() -> None:
    script = (
        "import sys, estimator_core; print(sorted(m for m in ('jax', 'numpy', 'orbax', 'optax', 'pluggy') if m in "
        "sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_no_public_name_is_hidden_by_a_module_of_that_name() -> None:
    """Importing a submodule sets it as an attribute of the package, which would take precedence over the lazy name."""
    modules = {path.stem for path in STUB.parent.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    hidden = {name for name in modules & stub_names() if not inspect.ismodule(getattr(ec, name))}
    assert not hidden


def test_every_public_module_is_an_attribute_without_an_import_of_its_own() -> None:
    modules = sorted(path.stem for path in STUB.parent.glob("[!_]*.py"))
    assert set(modules) <= stub_names()
    script = (  # each in a separate process: an imported module makes others attributes
        "import sys, estimator_core as ec\n"
        f"for name in {modules}:\n"
        f"    for one in {modules}:\n"
        "        vars(ec).pop(one, None)\n"
        "    assert getattr(ec, name).__name__ == f'estimator_core.{name}'"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
