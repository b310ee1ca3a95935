"""The cost of installed but unused packages: commands and a first step with 200 of them, and without any.

    uv run python benchmarks/many_packages.py [--packages 200] [--rounds 15] [--json FILE]

Each package declares a head and a hook. Every tenth one also adds hooks to each run and declares a command. All of
them are in one folder on the import path, as an installer leaves them. Each sample is a process. Packages of the
environment are not on the allow lists here. `without an allow list` loads them all, for orientation.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _report import report, write
from _side_by_side import compare

PLUGIN = """
from estimator_core.plugins import Command, Component

ESTIMATOR_PLUGIN_API = (1, 2)


def estimator_components():
    return [
        Component(kind="head", name="head_{i}", target="generated_{i}.heads:Head", summary="A generated head."),
        Component(kind="hook", name="hook_{i}", target="generated_{i}.hooks:Hook", summary="A generated hook."),
    ]
"""
TAKES_PART = """

def estimator_capabilities():
    return ["adds_hooks"]


def estimator_commands():
    return [Command(name="generated-{i}", target="generated_{i}.command", summary="A generated command.")]


def estimator_run_hooks(run):
    from estimator_core.hooks import Hook

    return [Hook()]
"""
FIRST_STEP = """
import tempfile

from estimator_core.testing import tiny_estimator, tiny_input_fn

with tempfile.TemporaryDirectory() as folder:
    tiny_estimator(folder).train(tiny_input_fn(), steps=1)
"""
COMMAND = ("-m", "estimator_core._cli.main")
WORK = {"--help": (*COMMAND, "--help"), "plugins": (*COMMAND, "plugins"), "first step": ("-c", FIRST_STEP)}


def install(folder: Path, packages: int) -> str:
    """Writes the packages, and returns the allow list that names them."""
    names = [f"generated-{index}" for index in range(packages)]
    for index, name in enumerate(names):
        package = folder / name.replace("-", "_")
        package.mkdir()
        (package / "__init__.py").touch()
        source = PLUGIN + (TAKES_PART if index % 10 == 0 else "")
        (package / "plugin.py").write_text(source.format(i=index))
        metadata = folder / f"{package.name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: estimator-core>=0.1,<0.2\n"
        )
        (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{package.name} = {package.name}.plugin\n")
        (metadata / "RECORD").write_text(f"{package.name}/__init__.py,,\n{package.name}/plugin.py,,\n")
    return ",".join(names)


def process(folder: Path, allowed: str | None, cache: Path, *arguments: str) -> None:
    """Runs a process that has the folder on its path."""
    left_out = ("ESTIMATOR_", "PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    environment |= {"PYTHONPATH": str(folder), "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(cache)}
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment |= {} if allowed is None else {"ESTIMATOR_PLUGINS": allowed}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr}")


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description="Compare commands with many packages and with none.")
    parser.add_argument("--packages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-packages-") as scratch:
        many, none, cache = (Path(scratch, name) for name in ("many", "none", "cache"))
        for folder in (many, none, cache):
            folder.mkdir()
        allowed = install(many, args.packages)
        tables = []
        for title, arguments in WORK.items():
            contestants = {
                "no package": lambda arguments=arguments: process(none, "", cache, *arguments),
                f"{args.packages} packages": lambda arguments=arguments: process(many, allowed, cache, *arguments),
                "without an allow list": lambda arguments=arguments: process(many, None, cache, *arguments),
            }
            results = compare(contestants, reference="no package", rounds=args.rounds)
            each = (results[0].median - results[0].reference_median) * 1e3 / args.packages
            notes = [f"{each:.2f} ms a package"]
            tables.append(report(f"Process: {title}", results, steps=1, unit=("ms", 1e3), notes=notes))
        write(args.json, *tables)


if __name__ == "__main__":
    main()
