"""Tests of the gRPC form: raw and typed tensors, refusals as status codes, rights, limits and certificates."""

import contextlib
import socket
import threading
import time

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")

from estimator_core._cli.main import main  # noqa: E402
from estimator_core.export import Feature  # noqa: E402
from estimator_exporters.serving.access import (  # noqa: E402
    Right,
    _digest,
    access_of,
)
from estimator_exporters.serving.grpc_messages import MESSAGES, SERVICE  # noqa: E402
from estimator_exporters.serving.grpc_server import grpc_serving  # noqa: E402
from estimator_exporters.serving.limits import Limits  # noqa: E402
from estimator_exporters.serving.observing import Observing  # noqa: E402
from plugins.exporters.tests.live_server import echo, function_model, running  # noqa: E402

ONE = np.ones((1, 2), np.float32)


def sent(channel, method):
    """The function that sends a request of a method."""
    return channel.unary_unary(
        f"/{SERVICE}/{method}",
        request_serializer=MESSAGES[f"{method}Request"].SerializeToString,
        response_deserializer=MESSAGES[f"{method}Response"].FromString,
    )


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def failing(arrays):
    raise RuntimeError("secret detail")


@pytest.fixture(scope="module")
def ask():
    feature = Feature((None, 2))
    models = {
        "echo": {"1": echo("float32"), "2": echo("float32")},
        "small": {"1": echo("int8")},
        "text": {"1": echo("string", (None,))},
        "bad": {"1": function_model(failing, {"x": feature}, {"y": feature})},
        "wide": {"1": echo("int64", computed={"x": "int32"})},
        "ham": {"1": echo("float32")},
    }
    rights = [Right(digest=_digest("the-token"), models=["echo", "small", "text", "bad", "wide", "none"])]
    ports, traced = [], []

    def beside(engine):
        return grpc_serving(engine, "127.0.0.1", 0, None, ports.append)

    @contextlib.contextmanager
    def tracing(model, parent):
        statuses = []
        try:
            yield statuses.append
        finally:
            traced.append((model, parent, statuses))

    around = {"access": access_of(rights), "beside": beside, "observing": Observing(tracing=tracing)}
    limits = Limits(memory_bytes=2**28, under_way=256, values=1000, poll_seconds=60)
    with (
        running(models, limits=limits, **around) as server,
        grpc.insecure_channel(f"127.0.0.1:{ports[0]}") as channel,
    ):

        def call(method, token="the-token", **fields):
            metadata = (("authorization", f"Bearer {token}"),) if token else ()
            return sent(channel, method)(MESSAGES[f"{method}Request"](**fields), timeout=30, metadata=metadata)

        call.server, call.traced = server, traced
        yield call


def tensor(array=ONE, name="x", datatype="FP32", **more):
    return {"name": name, "datatype": datatype, "shape": array.shape, **more}


def infer(ask, model="echo", array=ONE, version="", **fields):
    return ask("ModelInfer", model_name=model, model_version=version, **{**whole(array), **fields})


def whole(array):
    """The fields of a request with one raw tensor."""
    return {"inputs": [tensor(array)], "raw_input_contents": [array.tobytes()]}


def test_a_call_is_traced_with_its_status(ask):
    ask.traced.clear()
    infer(ask)
    for model in ("bad", "none", "ham"):
        with pytest.raises(grpc.RpcError):
            infer(ask, model=model)
    ask("ServerLive")
    expected = [("echo", 200), ("bad", 500), ("none", 404), ("ham", 403)]
    assert ask.traced == [(model, None, [status]) for model, status in expected]


def test_raw_tensors_and_contents(ask):
    array = np.array([[1, 2], [3, 4]], np.float32)
    for answer in (
        infer(ask, array=array, id="7"),
        infer(ask, array=array, version="2", id="7"),
        ask("ModelInfer", model_name="echo", id="7", inputs=[tensor(array, contents={"fp32_contents": [1, 2, 3, 4]})]),
    ):
        assert (answer.model_name, answer.model_version, answer.id) == ("echo", "2", "7")
        assert answer.raw_output_contents[0] == array.tobytes()
        assert (answer.outputs[0].datatype, list(answer.outputs[0].shape)) == ("FP32", [2, 2])
    assert infer(ask, version="1").model_version == "1"
    words = [tensor(np.zeros(2), datatype="BYTES", contents={"bytes_contents": [b"a", b"\xff"]})]
    answer = ask("ModelInfer", model_name="text", inputs=words)
    assert answer.raw_output_contents[0] == b"\x01\0\0\0a\x01\0\0\0\xff"


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"model": "none"}, "NOT_FOUND", "there is no model 'none'"),
        ({"version": "9"}, "NOT_FOUND", "has no version '9'"),
        ({"model": "ham"}, "PERMISSION_DENIED", "does not permit"),
        ({"model": "bad"}, "INTERNAL", "the server's log says why"),
        ({"inputs": [tensor(name="z")]}, "INVALID_ARGUMENT", "unknown inputs"),
        ({"inputs": [tensor(datatype="FLOAT")]}, "INVALID_ARGUMENT", "datatype must be one of"),
        ({"inputs": [tensor(), tensor()]}, "INVALID_ARGUMENT", "2 inputs and 1 raw"),
        ({"inputs": [tensor(np.zeros((2, 2)))]}, "INVALID_ARGUMENT", "needs 16 bytes"),
        ({"inputs": [{**tensor(), "shape": [-1, 2]}]}, "INVALID_ARGUMENT", "sizes of at least 0"),
        ({"raw_input_contents": []}, "INVALID_ARGUMENT", "needs 2 values"),
        (
            {"inputs": [tensor(contents={"fp32_contents": [5, 6]})]},
            "INVALID_ARGUMENT",
            "input 'x': it has both contents and raw_input_contents",
        ),
        ({"inputs": [tensor(datatype="FP16")], "raw_input_contents": []}, "INVALID_ARGUMENT", "FP16 has no contents"),
        (
            {
                "model": "small",
                "inputs": [tensor(datatype="INT8", contents={"int_contents": [1, 200]})],
                "raw_input_contents": [],
            },
            "INVALID_ARGUMENT",
            "outside the range of INT8",
        ),
        (
            {"model": "wide", "array": np.full((1, 2), 2**31), "inputs": [tensor(datatype="INT64")]},
            "INVALID_ARGUMENT",
            "'x' holds 2147483648, outside the range of int32",
        ),
        (
            {"model": "text", "inputs": [tensor(np.zeros(2000), datatype="BYTES")], "raw_input_contents": [b""]},
            "RESOURCE_EXHAUSTED",
            "more than 1000 strings",
        ),
        ({"array": np.ones((200_000, 2), np.float32)}, "RESOURCE_EXHAUSTED", "larger than max"),
        ({"outputs": [{"name": "z"}]}, "INVALID_ARGUMENT", "no output 'z'"),
    ],
)
def test_what_is_wrong_is_said(ask, fields, code, message):
    with pytest.raises(grpc.RpcError) as error:
        infer(ask, **fields)
    assert (error.value.code().name, message in error.value.details()) == (code, True), error.value.details()
    assert infer(ask).raw_output_contents[0] == ONE.tobytes()


def test_only_health_needs_no_token(ask):
    assert ask("ServerLive", token=None).live
    assert ask("ServerReady", token=None).ready
    for method, fields in {
        "ServerMetadata": {},
        "ModelMetadata": {"name": "echo"},
        "ModelReady": {"name": "echo"},
        "ModelStatistics": {},
        "ModelInfer": {"model_name": "echo"},
    }.items():
        for token in (None, "another-token"):
            with pytest.raises(grpc.RpcError) as error:
                ask(method, token=token, **fields)
            assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED, method


def test_metadata_statistics_and_metrics(ask):
    found = ask("ModelMetadata", name="echo")
    assert list(found.versions) == ["1", "2"]
    assert list(found.inputs[0].shape) == [-1, 2]
    assert ask("ModelReady", name="echo").ready
    before = ask("ModelStatistics", name="echo", version="2").model_stats[0]
    infer(ask)
    (after,) = ask("ModelStatistics", name="echo", version="2").model_stats
    assert after.inference_count == before.inference_count + 1
    assert after.inference_stats.success.count == before.inference_stats.success.count + 1
    text = ask.server.metrics.text().decode()
    assert 'estimator_requests_total{model="echo",status="200"}' in text
    assert ask.server.engine.budget.used == 0


@contextlib.contextmanager
def holding():
    """A server whose model answers once the event is set, and a call of it that is in progress."""
    ports, go = [], threading.Event()

    def held(arrays):
        go.wait(60)
        return {"y": arrays["x"]}

    feature = {"x": Feature((None, 2))}
    models = {"m": {"1": function_model(held, feature, {"y": Feature((None, 2))})}}
    with (
        running(models, beside=lambda engine: grpc_serving(engine, "127.0.0.1", 0, None, ports.append)) as server,
        grpc.insecure_channel(f"127.0.0.1:{ports[0]}") as channel,
    ):
        call = sent(channel, "ModelInfer").future(MESSAGES["ModelInferRequest"](model_name="m", **whole(ONE)))
        until(lambda: "estimator_requests_under_way 1.0" in server.metrics.text().decode())
        yield server, call, go


def test_a_call_that_its_client_cancels_is_counted_as_such():
    """Until the call is over, it counts as one of the requests in progress."""
    with holding() as (server, call, go):
        call.cancel()
        until(lambda: "estimator_requests_under_way 0.0" in server.metrics.text().decode())
        counted = [one for one in server.metrics.text().decode().splitlines() if "estimator_requests_total{" in one]
        go.set()
    assert counted == ['estimator_requests_total{model="m",status="499"} 1.0']


def test_calls_that_reach_a_server_as_it_ends_are_told_to_ask_again():
    """gRPC itself cancels such calls, and clients do not retry cancelled calls."""
    ports, codes = [], []

    def ask_on():
        with grpc.insecure_channel(f"127.0.0.1:{ports[0]}", (("grpc.use_local_subchannel_pool", 1),)) as channel:
            infers = sent(channel, "ModelInfer")
            while True:
                try:
                    infers(MESSAGES["ModelInferRequest"](model_name="m", **whole(ONE)), timeout=30)
                except grpc.RpcError as error:
                    codes.append(error.code())
                    return

    clients = [threading.Thread(target=ask_on) for _ in range(48)]
    beside = {"beside": lambda engine: grpc_serving(engine, "127.0.0.1", 0, None, ports.append)}
    with running({"m": {"1": echo("float32")}}, **beside):
        for client in clients:
            client.start()
        time.sleep(1)
    for client in clients:
        client.join()
    assert codes == [grpc.StatusCode.UNAVAILABLE] * 48


def test_a_call_that_outlasts_the_drain_is_told_to_ask_again():
    with holding() as (server, call, go):
        server.stop()  # the shutdown has no drain time
        told = call.exception(30)
        go.set()
    assert told.code() == grpc.StatusCode.UNAVAILABLE
    assert told.details() == "the server stopped before the model answered; try again"
    assert 'estimator_requests_total{model="m",status="503"} 1.0' in server.metrics.text().decode()
    assert server.engine.draining.overdue


def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(export, capsys, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", export, "--port", "0", "--grpc-port", str(port)]) == 2
        assert f"Cannot listen on 127.0.0.1:{port}" in (told := capsys.readouterr().err)
        assert "Choose another --grpc-port." in told
    assert main(["serve", export, "--port", str(port), "--grpc-port", str(port)]) == 2
    assert "--grpc-port and --port must differ" in capsys.readouterr().err
    assert not caplog.records
