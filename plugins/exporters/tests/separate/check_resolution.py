"""Checks that pip and uv install `estimator-exporters[onnx]` with a new orbax-checkpoint.

Run as `python check_resolution.py WHEELS`. Both resolvers must choose a jax2onnx of this year: a version that is newer
than the newest one at the start of the year.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from uv import find_uv_bin

WANTED = ("estimator-exporters[onnx]", "orbax-checkpoint>=0.12")


def version(text):
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def by_uv(*requirements, **options):
    """The versions that uv chooses, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "requirements.in")
        path.write_text("\n".join(requirements))
        more = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        command = [find_uv_bin(), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-sources", *more]
        found = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True).stdout
    return dict(line.partition(" ")[0].split("==") for line in found.splitlines() if "==" in line)


def by_pip(*requirements, wheels):
    """The versions that pip chooses, by name."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-"]
    found = subprocess.run(
        [*command, "--find-links", wheels, *requirements], capture_output=True, text=True, check=True
    ).stdout
    installed = json.loads(found)["install"]
    return {one["metadata"]["name"].lower(): one["metadata"]["version"] for one in installed}


def main(wheels):
    began = by_uv("jax2onnx", exclude_newer=f"{time.gmtime().tm_year}-01-01T00:00:00Z")["jax2onnx"]
    for name, chosen in (("uv", by_uv(*WANTED, find_links=wheels)), ("pip", by_pip(*WANTED, wheels=wheels))):
        converter, checkpoints = chosen["jax2onnx"], chosen["orbax-checkpoint"]
        print(f"{name}: jax2onnx {converter} (this year began with {began}), orbax-checkpoint {checkpoints}")
        assert version(converter) > version(began), f"{name} chooses a jax2onnx of an earlier year"
        assert version(checkpoints) >= (0, 12)


if __name__ == "__main__":
    main(sys.argv[1])
