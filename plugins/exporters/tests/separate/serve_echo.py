"""Serves one model per datatype, which returns its inputs, to a client: `python serve_echo.py FORM CLIENT...`.

FORM is http or grpc. The client is a command. It receives the address as its last argument, and this script exits with
its exit status.
"""

import os
import subprocess
import sys

from estimator_exporters.serving.datatypes import NUMPY
from plugins.exporters.tests.live_server import echo, nothing, running


def by_grpc(ports):
    """Serves by gRPC as well, and appends the port to the list."""
    from estimator_exporters.serving.grpc_server import grpc_serving

    return lambda engine: grpc_serving(engine, "127.0.0.1", 0, None, ports.append)


if __name__ == "__main__":
    form, *client = sys.argv[1:]
    models = {f"echo_{name}": {"1": echo("string" if name == "BYTES" else str(dtype))} for name, dtype in NUMPY.items()}
    ports = []
    with running(models, beside=by_grpc(ports) if form == "grpc" else nothing) as server:
        port = ports[0] if ports else server.port
        env = {**os.environ, "PYTHONSAFEPATH": ""}  # the scripts of the client import each other
        sys.exit(subprocess.run([*client, f"127.0.0.1:{port}"], env=env, check=False).returncode)
