"""A folder of installed packages, which the tests write themselves."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from estimator_core._plugins import Plugins

API = "ESTIMATOR_PLUGIN_API = (1, 0)\n"


class Site:
    """Packages as an installer leaves them: modules, and metadata with the entry point.

    Args:
        path: the folder. It is on the import path of this process and of the processes that `run` starts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(
        self,
        distribution: str,
        source: str,
        *,
        name: str | None = None,
        api: str = API,
        version: str = "1.0",
        requires: str = "estimator-core>=0.1,<0.2",
        files: dict[str, str] | None = None,
    ) -> str:
        """Installs a package whose plugin module has this source, and returns the name of the module."""
        package = distribution.replace("-", "_")
        folder = self.path / package
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "plugin.py").write_text(api + textwrap.dedent(source))
        for file, text in (files or {}).items():
            (folder / file).write_text(textwrap.dedent(text))
        metadata = self.path / f"{package}-{version}.dist-info"
        metadata.mkdir()
        requirement = f"Requires-Dist: {requires}\n" if requires else ""
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n{requirement}"
        )
        (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{name or package} = {package}.plugin\n")
        return f"{package}.plugin"

    def add_component(self, distribution: str, kind: str, component: str, target: str = "json:loads") -> None:
        """Installs a package that declares one component."""
        self.add(
            distribution,
            f"""
            from estimator_core._plugins import Component

            def estimator_components():
                return [Component(kind={kind!r}, name={component!r}, target={target!r}, summary="A fixture.")]
            """,
        )

    def remove(self, distribution: str) -> None:
        """Uninstalls a package."""
        package = distribution.replace("-", "_")
        for folder in (self.path / package, *self.path.glob(f"{package}-*.dist-info")):
            shutil.rmtree(folder)
        importlib.invalidate_caches()
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]

    def plugins(self, **arguments: object) -> Plugins:
        """Returns the plugins of this site, without those of the development environment."""
        names = [path.name.partition("-")[0] for path in self.path.glob("*.dist-info")]
        return Plugins(**{"only": names, "environ": {}, **arguments})

    def run(self, *words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs `estimator` in a process with this site, and with only its plugins unless `environ` changes that."""
        return self.python("-m", "estimator_core._cli.main", *words, environ=environ)

    def python(self, *words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs Python in a process that has this site."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ESTIMATOR_")}
        path = os.pathsep.join([str(self.path), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, *words],
            env={**inherited, "PYTHONPATH": path, **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def forget(self) -> None:
        """Removes the packages of this site from the running process."""
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(self.path)):
                del sys.modules[name]
