"""Runs every recorder again with the real tf.estimator. With ``--check``, it only compares with the committed files.

Run it with a Python that has ``tensorflow-cpu==2.15.1``. It needs nothing of this project.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

PARITY = pathlib.Path(__file__).resolve().parent
PLUGINS = [PARITY.parents[1] / "plugins" / plugin / "tests" for plugin in ("heads", "canned_tabular")]
TOLERANCE = 1e-5  # the last bits of a sum differ between processors


def differences(committed, made, where=""):
    """Yields one line for each place where two JSON values differ by more than float rounding."""
    if isinstance(committed, dict) and isinstance(made, dict):
        for key in sorted(set(committed) | set(made)):
            if key not in committed or key not in made:
                yield f"{where}/{key}: only in {'made' if key in made else 'committed'}"
            else:
                yield from differences(committed[key], made[key], f"{where}/{key}")
    elif isinstance(committed, list) and isinstance(made, list) and len(committed) == len(made):
        for index, (left, right) in enumerate(zip(committed, made, strict=True)):
            yield from differences(left, right, f"{where}[{index}]")
    elif isinstance(committed, float) and isinstance(made, (int, float)):
        if not math.isclose(committed, made, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{where}: committed {committed}, made {made}"
    elif committed != made:
        yield f"{where}: committed {json.dumps(committed)[:200]}, made {json.dumps(made)[:200]}"


def recorders():
    """Yields all recorder scripts with the folders of their recordings."""
    for folder in (PARITY, *PLUGINS):
        for script in sorted(folder.glob("record_*.py")):
            yield script, folder / "recorded"


def run(script, target):
    """Runs one recorder so that it writes to ``target``, and returns the recording."""
    subprocess.run([sys.executable, str(script)], check=True, env={**os.environ, "RECORDED_FOLDER": str(target)})
    return json.loads((target / f"{script.stem.removeprefix('record_')}.json").read_text())


def check(script, committed_folder, scratch):
    """Returns the differences between a fresh recording and the committed one."""
    made = run(script, scratch)
    committed = json.loads((committed_folder / f"{script.stem.removeprefix('record_')}.json").read_text())
    for recording in (made, committed):
        recording["header"]["versions"].pop("python")
    return list(differences(committed, made))


def main(arguments=None):
    """Returns the number of recordings that differ with ``--check``, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed recordings; write nothing")
    parser.add_argument("names", nargs="*", help="recordings to make; all of them when none is named")
    options = parser.parse_args(arguments)
    stale = 0
    with tempfile.TemporaryDirectory() as scratch:
        for script, folder in recorders():
            if options.names and script.stem.removeprefix("record_") not in options.names:
                continue
            if not options.check:
                run(script, folder)
                continue
            found = check(script, folder, pathlib.Path(scratch))
            stale += bool(found)
            print(f"{script.name}: {'as committed' if not found else f'{len(found)} differences'}")
            for line in found[:20]:
                print(f"  {line}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
