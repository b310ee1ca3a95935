"""Serves a model for every datatype, which gives what it takes, until its standard input ends; prints the address."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4]))

from estimator_exporters.serving.datatypes import NUMPY
from plugins.exporters.tests.live_server import echo, running

if __name__ == "__main__":
    models = {f"echo_{name}": {"1": echo("string" if name == "BYTES" else str(dtype))} for name, dtype in NUMPY.items()}
    with running(models) as server:
        print(f"127.0.0.1:{server.port}", flush=True)
        sys.stdin.read()
