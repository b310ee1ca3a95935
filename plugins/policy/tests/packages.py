"""Writes installed packages with plugins for tests."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

HEAD = """
from estimator_core.plugins import Component, Option

def estimator_components():
    return [Component(kind={kind!r}, name={name!r}, target={target!r}, summary="A fixture.")]

def estimator_options():
    return [Option(name="url", type=str, default="nowhere", help="A fixture.")]
"""


def install(
    site: Path, distribution: str, *, kind: str = "head", name: str = "binary_class", target: str = "", more: str = ""
) -> str:
    """Installs a package with one component, and returns the name of its plugin module."""
    package = distribution.replace("-", "_")
    folder = site / package
    folder.mkdir(parents=True)
    source = HEAD.format(kind=kind, name=name, target=target or f"{package}.parts:Part")
    (folder / "__init__.py").write_text("")
    (folder / "plugin.py").write_text("ESTIMATOR_PLUGIN_API = (1, 0)\n" + source + textwrap.dedent(more))
    (folder / "parts.py").write_text("class Part:\n    pass\n")
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[estimator.plugins]\n{package} = {package}.plugin\n")
    return f"{package}.plugin"


def forget(site: Path) -> None:
    """Removes the packages from the running process."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(site)):
            del sys.modules[name]
