"""HTTP requests whose clients have closed the connection do not run any more."""

import contextlib
import json
import socket
import threading
import time

import numpy as np
import pytest

from estimator_core.export import Feature
from plugins.exporters.tests.live_server import function_model, running

ROWS = 8  # the rows of one run
LONG = 2**19 // ROWS  # numbers per row: requests have 2 MB, so the last piece that is read is long, too


class Held:
    """A model whose runs wait until they are released, at the latest at the end of its block."""

    def __init__(self, width):
        self.runs, self.go = [], threading.Event()
        feature = Feature((None, width))
        self.model = function_model(self._run, {"x": feature}, {"y": feature})

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.go.set()

    def _run(self, arrays):
        self.runs.append(float(arrays["x"][0, 0]))
        self.go.wait(30)
        return {"y": arrays["x"]}


def body(number, width):
    tensor = np.full((ROWS, width), number, np.float32).tobytes()
    described = {"name": "x", "datatype": "FP32", "shape": [ROWS, width]}
    head = json.dumps({"inputs": [described | {"parameters": {"binary_data_size": len(tensor)}}]}).encode()
    return head + tensor, len(head)


@contextlib.contextmanager
def asked(server, number, width):
    """A request that is sent completely."""
    content, head = body(number, width)
    lengths = f"Content-Length: {len(content)}\r\nInference-Header-Content-Length: {head}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n{lengths}".encode() + content)
        yield connection


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def in_progress(server):
    return server.metrics.registry.get_sample_value("estimator_requests_under_way")


@pytest.mark.parametrize("width", [2, LONG])
def test_a_client_that_leaves_takes_its_request_along(width):
    held = Held(width)
    with running({"m": {"1": held.model}}) as server, held, asked(server, 1, width) as first:
        until(lambda: held.runs)
        with asked(server, 2, width):
            until(lambda: held.model._batcher._waiting)
        until(lambda: in_progress(server) == 1)
        with asked(server, 3, width) as last:
            until(lambda: in_progress(server) == 2)
            held.go.set()
            assert first.recv(12) == last.recv(12) == b"HTTP/1.1 200"
        until(lambda: not in_progress(server))
        count = server.metrics.registry.get_sample_value("estimator_requests_total", {"model": "m", "status": "499"})
        used = server.metrics.registry.get_sample_value("estimator_memory_bytes")
    assert held.runs == [1.0, 3.0]
    assert count == 1
    assert used < 2**20
