"""Proves the ported programs of plugins/migration against real TensorFlow; `--write` makes the recordings again.

    python .ci/proofs.py [--write] [--python 2.15.1=PYTHON] [--python 1.15.0=PYTHON]

An interpreter that is not named gets an environment of its own; without Python 3.7, 1.15.0 is left out by name.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from plugins.migration.tests.proof_list import PAIRS, Pair  # noqa: E402

WANTED = {
    "2.15.1": ("3.11", ("tensorflow-cpu==2.15.1",)),
    "1.15.0": ("3.7", ("tensorflow-cpu==1.15.0", "protobuf<3.21", "numpy<1.19")),
}


def environment(version: str, folder: Path) -> str | None:
    """An interpreter with this TensorFlow; None: there is no Python for it."""
    python, packages = WANTED[version]
    found = subprocess.run(["uv", "python", "find", "--no-python-downloads", python], capture_output=True, text=True)
    if found.returncode:
        return None
    subprocess.run([found.stdout.strip(), "-m", "venv", str(folder)], check=True)
    made = str(folder / "bin" / "python")
    subprocess.run([made, "-m", "pip", "install", "--quiet", *packages], check=True)
    return made


def prove(pair: Pair, python: str, *options: str) -> int:
    """Runs the command; its exit status."""
    command = ["estimator", "migrate", "prove", pair.old, pair.new, "--tf-python", python]
    return subprocess.run([*command, *pair.options, *options]).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make the recordings again")
    parser.add_argument("--python", action="append", default=[], metavar="VERSION=PYTHON")
    args = parser.parse_args()
    given = dict(each.split("=", 1) for each in args.python)
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for version in WANTED:
            python = given.get(version) or environment(version, Path(scratch, version))
            if python is None:
                print(f"TensorFlow {version} is left out: there is no Python {WANTED[version][0]}")
                continue
            for pair in (each for each in PAIRS if each.tensorflow == version):
                name = f"{pair.program}_{pair.function}"
                print(f"== {name}, TensorFlow {version}", flush=True)
                short = ["--steps", "2", "--eval-batches", "1", "--record", str(pair.recorded)]
                if prove(pair, python, *(short if args.write else ["--steps", "10"])):
                    failed.append(name)
    print(f"These differ: {', '.join(failed)}" if failed else "All agree.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
