"""Proves ported programs and converted checkpoints of plugins/migration against real TensorFlow.

    python .ci/proofs.py [--write] [--only pairs|canned] [--python 2.15.1=PYTHON] [--python 1.15.0=PYTHON]

`--write` makes the recordings again, and the table of docs/migrate/checkpoints.md.

An unnamed interpreter gets a separate environment. Without Python 3.7, 1.15.0 is skipped by name.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from plugins.migration.tests.canned import cases  # noqa: E402
from plugins.migration.tests.proof_list import PAIRS, Pair  # noqa: E402

CANNED = ROOT / "plugins" / "migration" / "tests" / "canned"
RECORDED = ROOT / "plugins" / "migration" / "tests" / "recorded" / "canned"
PAGE = ROOT / "docs" / "migrate" / "checkpoints.md"
LIMIT = 1e-4

WANTED = {
    "2.15.1": ("3.11", ("tensorflow-cpu==2.15.1",)),
    "1.15.0": ("3.7", ("tensorflow-cpu==1.15.0", "protobuf<3.21", "numpy<1.19")),
}


def environment(version: str, folder: Path) -> str | None:
    """Returns an interpreter with this TensorFlow, or None without a suitable Python."""
    python, packages = WANTED[version]
    found = subprocess.run(["uv", "python", "find", "--no-python-downloads", python], capture_output=True, text=True)
    if found.returncode:
        return None
    subprocess.run([found.stdout.strip(), "-m", "venv", str(folder)], check=True)
    made = str(folder / "bin" / "python")
    subprocess.run([made, "-m", "pip", "install", "--quiet", *packages], check=True)
    return made


def prove(pair: Pair, python: str, *options: str) -> int:
    """Runs the command, and returns its exit status."""
    command = ["estimator", "migrate", "prove", pair.old, pair.new, "--tf-python", python]
    here = {**os.environ, "KERAS_BACKEND": "jax"}  # the interpreter of TensorFlow has another Keras
    return subprocess.run([*command, *pair.options, *options], env=here).returncode


def prove_pairs(version: str, python: str, write: bool) -> list[str]:
    """Returns the names of the programs that differ."""
    failed: list[str] = []
    for pair in (each for each in PAIRS if each.tensorflow == version):
        name = f"{pair.program}_{pair.function}"
        print(f"== {name}, TensorFlow {version}", flush=True)
        short = ["--steps", "2", "--eval-batches", "1", "--record", str(pair.recorded)]
        if prove(pair, python, *(short if write else ["--steps", "10"])):
            failed.append(name)
    return failed


def prove_canned(version: str, python: str, scratch: Path, write: bool) -> dict[tuple[str, str], float]:
    """Returns the largest difference of each canned estimator and optimizer, after 50 steps there and 50 here."""
    from plugins.migration.tests.canned.this_side import differences

    there, found = scratch / "there", dict[tuple[str, str], float]()
    subprocess.run([python, str(CANNED / "tf_side.py"), str(there)], check=True)
    for estimator, optimizer in cases.names():
        name = cases.folder_of(version, estimator, optimizer)
        seen = differences(version, estimator, optimizer, there / name, scratch / "here" / name)
        print(f"== {name}: weights {seen.weights:.1e}, slots {seen.slots:.1e}, {seen.arrays} arrays", flush=True)
        found[estimator, optimizer] = max(seen.weights, seen.slots)
        if write and (version, estimator, optimizer) in cases.RECORDED:
            shutil.rmtree(RECORDED / name, ignore_errors=True)
            shutil.copytree(there / name, RECORDED / name, ignore=shutil.ignore_patterns("eval", "graph*", "events*"))
    return found


def write_table(found: dict[str, dict[tuple[str, str], float]]) -> None:
    """Writes the differences to the page."""
    rows = ["| estimator | optimizer |" + "".join(f" {version} |" for version in found)]
    rows += ["|---|---|" + "---|" * len(found)]
    for case in cases.names():
        rows.append(f"| `{case[0]}` | {case[1]} |" + "".join(f" {seen[case]:.1e} |" for seen in found.values()))
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition("<!-- differences -->\n")
    after = rest.partition("<!-- end -->")
    PAGE.write_text(before + mark + "\n" + "\n".join(rows) + "\n\n" + "".join(after[1:]), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make the recordings and the table again")
    parser.add_argument("--only", choices=("pairs", "canned"), help="a part")
    parser.add_argument("--python", action="append", default=[], metavar="VERSION=PYTHON")
    args = parser.parse_args()
    given = dict(each.split("=", 1) for each in args.python)
    failed: list[str] = []
    differences: dict[str, dict[tuple[str, str], float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for version in WANTED:
            python = given.get(version) or environment(version, Path(scratch, version))
            if python is None:
                print(f"TensorFlow {version} is left out: there is no Python {WANTED[version][0]}")
                continue
            if args.only != "canned":
                failed += prove_pairs(version, python, args.write)
            if args.only != "pairs":
                seen = prove_canned(version, python, Path(scratch, f"canned-{version}"), args.write)
                differences[version] = seen
                failed += [cases.folder_of(version, *case) for case, value in seen.items() if not value < LIMIT]
    if args.write and len(differences) == len(WANTED):
        write_table(differences)
    print(f"These differ: {', '.join(failed)}" if failed else "All agree.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
