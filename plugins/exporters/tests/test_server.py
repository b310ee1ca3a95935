"""Tests of a running server: its answers, refusals, reload, limits, drain and metrics."""

import concurrent.futures
import gzip
import json
import logging
import re
import shutil
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from estimator_core.export import Feature
from estimator_exporters.serving.datatypes import NUMPY, to_bytes
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.protocol import HEADER_LENGTH
from estimator_exporters.serving.repository import Source, sources_of
from plugins.exporters.tests.live_server import SIZES, echo, function_model, running
from plugins.exporters.tests.small_model import receiver_fn, rows

TYPES = {name: "string" if name == "BYTES" else str(dtype) for name, dtype in NUMPY.items()}


@pytest.fixture(scope="module")
def server():
    models = {f"echo_{name}": {"1": echo(dtype)} for name, dtype in TYPES.items()}
    with running(models, limits=Limits(body_bytes=10_000, body_seconds=0.5, poll_seconds=60)) as found:
        yield found


@pytest.fixture(scope="module")
def real(export):
    with running(sources=[Source(name="small", directory=Path(export))]) as found:
        yield found


def binary(name, array, **more):
    chunk = to_bytes(array)
    tensor = {"name": "x", "datatype": name, "shape": list(array.shape), "parameters": {"binary_data_size": len(chunk)}}
    header = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}, **more}).encode()
    return header + chunk, {HEADER_LENGTH: str(len(header))}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_datatype_in_binary(server, name):
    array = np.array([[b"a", b"\xff"]], object) if name == "BYTES" else np.array([[0, 1]]).astype(NUMPY[name])
    body, headers = binary(name, array)
    status, answer, content = server.request("POST", f"/v2/models/echo_{name}/infer", body, headers)
    assert status == 200, content
    assert content[int(answer[HEADER_LENGTH]) :] == to_bytes(array)


def test_a_server_leaves_the_log_handlers_of_the_process_open():
    """A logging configuration closes all handlers, and absl's handler closes its stream, too."""
    closed = []

    class Watched(logging.StreamHandler):
        def close(self):
            closed.append(self)
            super().close()

    watched = Watched()
    with running({"m": {"1": echo("float32")}}):
        pass
    assert closed == []
    watched.close()


def test_health_metadata_and_index(real):
    assert real.request("GET", "/v2/health/live")[0] == 200
    assert real.request("GET", "/v2/health/ready")[0] == 200
    assert real.request("GET", "/v2")[2]["extensions"] == [
        "binary_tensor_data",
        "model_repository",
        "statistics",
    ]
    status, _, model = real.request("GET", "/v2/models/small")
    assert status == 200
    assert model["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert {output["name"]: output["datatype"] for output in model["outputs"]} == {
        "logits": "FP32",
        "class_ids": "INT32",
    }
    (version,) = model["versions"]
    assert real.request("GET", f"/v2/models/small/versions/{version}/ready")[0] == 200
    assert real.request("POST", "/v2/repository/index")[2][0]["name"] == "small"


def test_answers_are_those_of_the_estimator(real, estimator):
    for batch in (1, 3, 8, 21):
        features, _ = rows(batch, seed=batch)
        status, found = real.infer("small", **features)
        assert status == 200, found
        expected = estimator.predictor()(features)
        np.testing.assert_allclose(found["logits"], expected["logits"], rtol=0, atol=1e-5)
        np.testing.assert_array_equal(found["class_ids"], expected["class_ids"])


def test_concurrent_clients_get_their_own_answers_in_few_batch_sizes(real, estimator):
    features, _ = rows(64, seed=3)
    expected = estimator.predictor()(features)["logits"]

    def ask(row):
        return real.infer("small", x=features["x"][row : row + 1])

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(64)))
    assert [status for status, _ in answers] == [200] * 64
    np.testing.assert_allclose(np.concatenate([found["logits"] for _, found in answers]), expected, rtol=0, atol=1e-5)
    text = real.request("GET", "/metrics")[2].decode()
    assert re.search(r'estimator_requests_total\{model="small",status="200"\} \d+', text)
    assert f'estimator_batch_size_bucket{{le="{float(SIZES[-1])}",model="small"}}' in text
    assert 'estimator_queue_seconds_count{model="small"}' in text
    assert 'estimator_compute_seconds_sum{model="small"}' in text


GOOD = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("echo_FP32", {"inputs": [GOOD]}, 200, None),
        ("none", {"inputs": [GOOD]}, 404, "there is no model 'none'"),
        ("echo_FP32/versions/9", {"inputs": [GOOD]}, 404, "has no version '9'"),
        ("echo_FP32", {"inputs": []}, 400, r"missing inputs \['x'\]"),
        ("echo_FP32", {"inputs": [{**GOOD, "name": "z"}]}, 400, r"unknown inputs \['z'\]"),
        ("echo_FP32", {"inputs": [{**GOOD, "datatype": "FP64"}]}, 400, "must be FP32, given FP64"),
        ("echo_FP32", {"inputs": [{**GOOD, "shape": [2, 1]}]}, 400, r"must have shape \[-1, 2\]"),
        ("echo_FP32", {"inputs": [{**GOOD, "shape": [0, 2], "data": []}]}, 400, r"A batch has at least one row\.$"),
        ("echo_FP32", {"inputs": [GOOD], "outputs": [{"name": "z"}]}, 400, "no output 'z'"),
        ("echo_FP32", b"{", 400, "is not JSON"),
        ("echo_FP32", b"x" * 10_001, 413, "accepts 10000"),
        ("echo_BYTES", {"inputs": [{**GOOD, "datatype": "BYTES", "data": ["\ud800", "a"]}]}, 400, "half a surrogate"),
        ("echo_FP32", {"inputs": [GOOD], "id": "\ud800"}, 400, "half a surrogate"),
        ("echo_FP32", {"inputs": [{**GOOD, "data": [1, "NaN"]}]}, 200, None),
    ],
)
def test_wrong_requests_are_refused_and_the_server_lives_on(server, path, body, status, message):
    found, _, content = server.request("POST", f"/v2/models/{path}/infer", body)
    assert found == status, content
    assert message is None or re.search(message, content["error"])
    assert server.infer("echo_FP32", x=np.ones((1, 2), np.float32))[0] == 200


def test_statistics(server):
    before = server.request("GET", "/v2/models/echo_INT32/versions/1/stats")[2]["model_stats"][0]
    for count in (1, 3):
        assert server.infer("echo_INT32", x=np.ones((count, 2), np.int32))[0] == 200
    refused = {"inputs": [{**GOOD, "datatype": "INT32", "name": "z"}]}
    assert server.request("POST", "/v2/models/echo_INT32/infer", refused)[0] == 400
    (found,) = server.request("GET", "/v2/models/echo_INT32/stats")[2]["model_stats"]
    assert (found["name"], found["version"]) == ("echo_INT32", "1")
    assert found["inference_count"] - before["inference_count"] == 4
    assert found["execution_count"] - before["execution_count"] == 2
    assert abs(found["last_inference"] / 1000 - time.time()) < 60
    for event, count in {"success": 2, "fail": 1, "queue": 2, "compute_input": 2, "compute_infer": 2}.items():
        new, old = found["inference_stats"][event], before["inference_stats"][event]
        assert new["count"] - old["count"] == count, event
        assert new["ns"] > old["ns"], event
    assert {one["batch_size"] for one in found["batch_stats"]} >= {1, 4}
    everything = server.request("GET", "/v2/models/stats")[2]["model_stats"]
    assert {one["name"] for one in everything} == {f"echo_{name}" for name in TYPES}
    assert server.request("GET", "/v2/models/none/stats")[0] == 404
    text = server.request("GET", "/metrics")[2].decode()
    assert "estimator_memory_bytes " in text
    assert "process_resident_memory_bytes" in text


def test_a_giant_body_of_unknown_length_is_cut_off(server):
    pieces = (b"x" * 5000 for _ in range(10))
    connection = server.connect()
    try:
        connection.request(
            "POST", "/v2/models/echo_FP32/infer", pieces, encode_chunked=True, headers={"transfer-encoding": "chunked"}
        )
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server closed the connection before the rest arrived
    finally:
        connection.close()
    assert server.infer("echo_FP32", x=np.ones((1, 2), np.float32))[0] == 200


def test_names_with_slashes_and_versions():
    """The signatures of a MultiHead are called `head/predict`."""
    with running({"m:head/predict": {"1": echo("float32"), "2": echo("float32")}}) as server:
        assert server.infer("m:head/predict", x=np.ones((1, 2), np.float32))[0] == 200
        assert server.infer("m:head/predict", version="1", x=np.ones((1, 2), np.float32))[0] == 200
        assert server.request("GET", "/v2/models/m:head/predict")[2]["versions"] == ["1", "2"]
        assert server.request("GET", "/v2/models/m:head/predict/versions/2")[2]["versions"] == ["2"]
        assert server.request("GET", "/v2/models/m:head/predict/versions/2/ready")[0] == 200
        assert server.request("GET", "/v2/models/m:head/predict/versions/3/ready")[0] == 404
        assert server.request("GET", "/v2/models/m:head/predict/config")[2]["max_batch_size"] == SIZES[-1]


def test_inputs_that_differ_in_their_batch_sizes():
    feature = Feature((None, 2))
    model = function_model(
        lambda arrays: {"y": arrays["a"] + arrays["b"]}, {"a": feature, "b": feature}, {"y": feature}
    )
    with running({"sum": {"1": model}}) as server:
        status, content = server.infer("sum", a=np.ones((1, 2), np.float32), b=np.ones((2, 2), np.float32))
        assert (status, content) == (400, {"error": "the inputs differ in their batch sizes: {'a': 1, 'b': 2}"})
        assert server.infer("sum", a=np.ones((2, 2), np.float32), b=np.ones((2, 2), np.float32))[0] == 200


def test_compressed_bodies(server):
    body = json.dumps({"inputs": [GOOD]}).encode()
    path = "/v2/models/echo_FP32/infer"
    assert server.request("POST", path, gzip.compress(body), {"content-encoding": "gzip"})[0] == 200
    assert server.request("POST", path, gzip.compress(body)[:-4], {"content-encoding": "gzip"})[0] == 400
    assert server.request("POST", path, b"junk", {"content-encoding": "gzip"})[0] == 400
    assert server.request("POST", path, body, {"content-encoding": "br"})[0] == 415
    bomb = gzip.compress(b"0" * 10_000_000)
    assert len(bomb) < 10_000
    assert server.request("POST", path, bomb, {"content-encoding": "gzip"})[0] == 413


def test_a_slow_client_is_told_so_and_holds_nobody_up(server):
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(b"POST /v2/models/echo_FP32/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
        assert server.infer("echo_FP32", x=np.ones((1, 2), np.float32))[0] == 200
        slow.settimeout(30)
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_more_requests_than_the_limit_are_turned_away():
    go_on = threading.Event()

    def slow(arrays):
        assert go_on.wait(30)
        return {"y": arrays["x"]}

    feature = Feature((None, 2))
    model = function_model(slow, {"x": feature}, {"y": feature})
    limits = Limits(under_way=2, poll_seconds=60)
    with running({"slow": {"1": model}}, limits=limits) as server, concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(server.infer, "slow", x=np.ones((1, 2), np.float32)) for _ in range(2)]
        while server.metrics.under_way._value.get() < 2:
            time.sleep(0.01)
        status, headers, content = server.request("POST", "/v2/models/slow/infer", {"inputs": [GOOD]})
        assert (status, headers["retry-after"]) == (503, "1")
        assert "2 requests are in progress" in content["error"]
        go_on.set()
        assert [one.result()[0] for one in waiting] == [200, 200]


def test_a_model_that_fails_is_a_500_without_its_details_and_the_server_lives_on(caplog):
    def fail(arrays):
        raise RuntimeError("secret detail")

    feature = Feature((None, 2))
    models = {"bad": {"1": function_model(fail, {"x": feature}, {"y": feature})}, "good": {"1": echo("float32")}}
    with running(models) as server:
        status, content = server.infer("bad", x=np.ones((1, 2), np.float32))
        assert (status, content) == (500, {"error": "the model failed; the server's log says why"})
        assert server.infer("good", x=np.ones((1, 2), np.float32))[0] == 200
    assert "secret detail" in caplog.text


def test_a_new_export_is_served_without_losing_a_request(estimator, tmp_path):
    base = tmp_path / "exports"
    first = estimator.export_saved_model(str(base), receiver_fn)
    with running(sources=sources_of([f"m={base}"])) as server:
        assert list(server.repository.models["m"]) == [Path(first).name]
        stop, answers = threading.Event(), []

        def ask():
            while not stop.is_set():
                answers.append(server.infer("m", **rows(2)[0])[0])

        asking = threading.Thread(target=ask)
        asking.start()
        second = estimator.export_saved_model(str(base), receiver_fn)
        deadline = time.monotonic() + 60
        while list(server.repository.models["m"]) != [Path(second).name] and time.monotonic() < deadline:
            time.sleep(0.05)
        stop.set()
        asking.join()
        assert list(server.repository.models["m"]) == [Path(second).name]
        assert set(answers) == {200}
        damaged = base / "1999999999"
        shutil.copytree(second, damaged)
        (damaged / "variables.safetensors").write_bytes(b"")
        time.sleep(0.5)
        assert list(server.repository.models["m"]) == [Path(second).name], (
            "a damaged export took the place of a sound one"
        )
        assert server.infer("m", **rows(2)[0])[0] == 200


def test_requests_under_way_are_answered_when_the_server_ends():
    runs, go_on = threading.Event(), threading.Event()

    def slow(arrays):
        runs.set()
        assert go_on.wait(30)
        return {"y": arrays["x"]}

    feature = Feature((None, 2))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with running({"slow": {"1": function_model(slow, {"x": feature}, {"y": feature})}}) as server:
            waiting = pool.submit(server.infer, "slow", x=np.ones((1, 2), np.float32))
            assert runs.wait(30)
            threading.Timer(0.3, go_on.set).start()
        assert waiting.result()[0] == 200
