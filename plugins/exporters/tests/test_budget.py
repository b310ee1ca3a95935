"""Tests of the memory budget: requests that never fit, requests that do not fit now, release of all memory."""

import gzip
import json
import threading

import numpy as np
import pytest

from estimator_core.export import Feature
from estimator_exporters.serving.budget import Budget
from estimator_exporters.serving.connections import CONNECTION_BYTES
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.refusals import FullError, TooLargeError
from plugins.exporters.tests.live_server import echo, function_model, running

PATH = "/v2/models/echo/infer"


def test_what_never_fits_and_what_does_not_fit_now():
    budget = Budget(100)
    with budget.lease() as one, budget.lease() as other:
        one.grow(60)
        with pytest.raises(FullError, match="try again later"):
            other.grow(41)
        with pytest.raises(TooLargeError, match="100 bytes"):
            one.grow(41)
        one.shrink(10)
        one.shrink(50)
        other.grow(90)
        assert budget.used == 100
    assert budget.used == 0


def body(count):
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [count, 2], "data": [1] * 2 * count}]})


def test_every_answer_gives_its_memory_back():
    limits = Limits(memory_bytes=8 * 2**20, body_bytes=2**21, poll_seconds=60)
    with running({"echo": {"1": echo("float32")}}, limits=limits) as server:
        connection = server.connect()
        for content, headers, status in [
            (body(2), {}, 200),
            (body(30_000), {}, 200),
            (body(150_000), {}, 413),
            (gzip.compress(body(30_000).encode()), {"content-encoding": "gzip"}, 200),
            (gzip.compress(body(30_000).encode())[:-9], {"content-encoding": "gzip"}, 400),
            (b"x" * 3_000_000, {}, 413),
            ("{", {}, 400),
        ]:
            connection.request("POST", PATH, content, headers)
            answer = connection.getresponse()
            said = answer.read()[:200]
            assert answer.status == status, said
            assert server.engine.budget.used == CONNECTION_BYTES, f"{status} left memory charged"
        connection.close()


def test_429_says_when_to_ask_again():
    runs, go_on = threading.Event(), threading.Event()

    def slow(arrays):
        runs.set()
        assert go_on.wait(30)
        return {"y": arrays["x"]}

    model = function_model(slow, {"x": Feature((None, 2))}, {"y": Feature((None, 2))})
    limits = Limits(memory_bytes=600_000, body_bytes=2**20, poll_seconds=60)
    binary = np.ones((50_000, 1, 2), np.float32).tobytes()
    tensor = {"name": "x", "datatype": "FP32", "shape": [50_000, 2], "parameters": {"binary_data_size": len(binary)}}
    header = json.dumps({"inputs": [tensor]}).encode()
    headers = {"inference-header-content-length": str(len(header))}
    with running({"echo": {"1": model}}, limits=limits) as server:
        first = server.connect()
        try:
            first.request("POST", PATH, header + binary, headers)
            assert runs.wait(30)
            status, answer, content = server.request("POST", PATH, header + binary, headers)
            assert (status, answer["retry-after"]) == (429, "1"), content
            assert "try again later" in content["error"]
            status, _, _ = server.request("GET", "/v2/health/live")
            assert status == 200
        finally:
            go_on.set()
            first.getresponse().read()
            first.close()


def test_connections_that_do_not_fit_are_told_so():
    limits = Limits(memory_bytes=3 * CONNECTION_BYTES, poll_seconds=60)
    with running({"echo": {"1": echo("float32")}}, limits=limits) as server:
        held = [server.connect() for _ in range(3)]
        for connection in held:
            connection.request("GET", "/v2/health/live")
            assert connection.getresponse().read() == b""
        status, answer, _ = server.request("GET", "/v2/health/live")
        assert (status, answer["retry-after"]) == (429, "1")
        for connection in held:
            connection.close()
