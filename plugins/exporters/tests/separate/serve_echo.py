"""Serves a model for every datatype, which gives what it takes, to a client: `python serve_echo.py CLIENT...`.

The client is a command that gets the address as its last argument; its exit status is ours.
"""

import subprocess
import sys

from estimator_exporters.serving.datatypes import NUMPY
from plugins.exporters.tests.live_server import echo, running

if __name__ == "__main__":
    models = {f"echo_{name}": {"1": echo("string" if name == "BYTES" else str(dtype))} for name, dtype in NUMPY.items()}
    with running(models) as server:
        sys.exit(subprocess.run([*sys.argv[1:], f"127.0.0.1:{server.port}"], check=False).returncode)
