"""Measures what `pip install` of a package adds to an empty environment: distributions, megabytes, import time.

`python .ci/footprint.py WHEEL_OF_THE_CORE [--write]`. A peer that cannot be installed is left out by name.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "plugins" / "footprint.md"
ROUNDS = 7
#: The distributions that an empty environment already has.
TOOLS = {"pip", "setuptools", "wheel"}
HEAD = """# What an installation brings

Each row is an empty environment after one `pip install`. Megabytes are those of the files, bytecode left out. The time
of an import is that of a new process, less that of a process that imports nothing: the median of {rounds}. A first
import, which also compiles the bytecode, is not counted. `uv run nox -s footprint -- --write` writes this page.

Measured with Python {python} on {machine}.{busy}

| installed | version | distributions | megabytes | the largest of them | import | milliseconds |
|---|---|---|---|---|---|---|
"""


class Peer(NamedTuple):
    """One row of the table.

    Attributes:
        title: the name in the table.
        requirements: the requirements that pip installs.
        distribution: the distribution whose version is shown.
        imported: the module to import.
        environment: the variables that the import needs.
    """

    title: str
    requirements: tuple[str, ...]
    distribution: str
    imported: str
    environment: dict[str, str] = {}  # noqa: RUF012 - never changed


def peers(wheel: str) -> tuple[Peer, ...]:
    """Returns the rows."""
    keras = {"KERAS_BACKEND": "jax"}
    return (
        Peer("estimator-core", (wheel,), "estimator-core", "estimator_core"),
        Peer("estimator-core, with what a training needs", (wheel,), "estimator-core", "estimator_core, jax, optax"),
        Peer("pluggy", ("pluggy",), "pluggy", "pluggy"),
        Peer("keras jax", ("keras", "jax"), "keras", "keras", keras),
        Peer("lightning", ("lightning",), "lightning", "lightning"),
    )


def seconds_of(python: Path, statement: str, environment: dict[str, str]) -> float:
    """Returns the median time of a process that runs a statement, in seconds."""
    found: list[float] = []
    for number in range(ROUNDS + 1):
        began = time.perf_counter()
        done = subprocess.run([str(python), "-c", statement], env={**os.environ, **environment}, capture_output=True)
        if done.returncode:
            raise SystemExit(f"{statement}: {done.stderr.decode()[-500:]}")
        found += [time.perf_counter() - began] if number else []
    return statistics.median(found)


def megabytes(folder: Path) -> dict[str, float]:
    """Returns the installed size of each distribution in megabytes, by name."""
    program = (
        "import importlib.metadata as m, json\n"
        "print(json.dumps({d.name.lower(): sum(p.locate().stat().st_size for p in d.files or () "
        "if p.suffix != '.pyc' and p.locate().is_file()) for d in m.distributions()}))"
    )
    done = subprocess.run([str(folder / "bin" / "python"), "-c", program], check=True, capture_output=True, text=True)
    return {name: size / 1e6 for name, size in json.loads(done.stdout).items() if name not in TOOLS}


def row(peer: Peer, folder: Path) -> str:
    """Installs and measures one peer, and returns its row.

    Raises:
        CalledProcessError: pip cannot install it.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *peer.requirements]
        subprocess.run(install, check=True, capture_output=True, text=True)
    sizes = megabytes(folder)
    largest = ", ".join(f"{name} {size:.0f}" for name, size in sorted(sizes.items(), key=lambda one: -one[1])[:3])
    ask = f"from importlib.metadata import version; print(version({peer.distribution!r}))"
    version = subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    took = seconds_of(python, f"import {peer.imported}", peer.environment) - seconds_of(python, "pass", {})
    numbers = f"{len(sizes)} | {sum(sizes.values()):.1f} | {largest} | `{peer.imported}` | {took * 1e3:.0f}"
    return f"| {peer.title} | {version} | {numbers} |"


def busy_words() -> str:
    """Returns a sentence if other work on the machine makes the figures too high."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f" The machine was busy: its load was {load:.0f} on {cores} cores." if load > cores + 1 else ""


def main() -> None:
    """Prints the table, and writes the page if requested."""
    parser = argparse.ArgumentParser(description="Measure what an installation brings.")
    parser.add_argument("wheel", help="of estimator-core")
    parser.add_argument("--write", action="store_true", help="write the page")
    args = parser.parse_args()
    rows: list[str] = []
    for peer in peers(args.wheel):
        with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
            try:
                rows.append(row(peer, Path(folder, "environment")))
            except subprocess.CalledProcessError as error:
                last = (error.stderr or "").strip().splitlines()[-1:] or [str(error)]
                if args.wheel in peer.requirements:
                    raise SystemExit(f"{peer.title} cannot be installed: {last[0]}") from error
                print(f"skipped: {peer.title} cannot be installed here: {last[0][:200]}")
                rows.append(f"| {peer.title} | not installed here | | | | | |")
        print(rows[-1], flush=True)
    if args.write:
        busy = busy_words()
        head = HEAD.format(rounds=ROUNDS, python=platform.python_version(), machine=platform.machine(), busy=busy)
        PAGE.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
