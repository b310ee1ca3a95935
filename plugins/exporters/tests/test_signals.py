"""Tests of the end of `estimator serve`: requests in progress, requests that take too long, two signals."""

import concurrent.futures
import json
import signal
import socket
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from plugins.exporters.tests.command_server import needs_curl, started

PROBE, BLOCK = 1_000, 2_000
pytestmark = needs_curl


def model_fn(features, labels, mode):
    """Counts to `n` in blocks, so that int32 suffices for minutes. Each request sets its own duration."""
    kernel = ec.get_variable("kernel", (), jax.nn.initializers.ones)
    start = features["n"].astype(jnp.float32) + 0 * kernel

    def block(_, value):
        return jax.lax.fori_loop(0, BLOCK, lambda _, value: jnp.sin(value) + 1e-9, value)

    counted = jax.lax.fori_loop(0, jnp.max(features["n"]), block, start)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"counted": counted, "n": features["n"]})
    return ec.EstimatorSpec(mode, loss=kernel**2, train_op=optax.sgd(0.0))


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """An export whose requests set their own duration."""
    folder = tmp_path_factory.mktemp("slow")
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    estimator = ec.Estimator(model_fn, config=config).train(lambda: [{"n": np.ones(4, np.int32)}], steps=1)
    receiver = ec.export.build_raw_serving_input_receiver_fn({"n": ec.export.Feature((None,), "int32")})
    return estimator.export_saved_model(str(folder / "export"), receiver)


def ask(server, count):
    body = {"inputs": [{"name": "n", "datatype": "INT32", "shape": [1], "data": [count]}]}
    return server.curl("/v2/models/m/infer", body=body)


def asked(server, pool, seconds):
    """A request of this duration that is in progress."""
    ask(server, PROBE)
    began = time.monotonic()
    ask(server, PROBE)
    count = int(PROBE * seconds / (time.monotonic() - began))
    waiting = pool.submit(ask, server, count)
    time.sleep(0.5)
    return waiting, count


def serve(slow, drain):
    return started(f"m={slow}", "--batch-sizes", "1", "--drain-seconds", drain)


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(1) as found:
        yield found


def test_a_slow_request_is_answered_and_the_exit_code_is_0(slow, pool):
    """The signal is sent twice at once, as by a terminal and by the program that started the server."""
    with serve(slow, 60) as server:
        waiting, count = asked(server, pool, 2)
        for one in (signal.SIGTERM, signal.SIGINT):
            server.process.send_signal(one)
        assert server.ended() == 0
        status, content = waiting.result()
        assert (status, json.loads(content)["outputs"][1]["data"]) == (200, [count])
        assert server.curl("/v2/health/live")[0] == 0
    assert "Traceback" not in server.log


def test_a_request_that_takes_longer_than_the_drain_is_told_so_and_the_process_ends(slow, pool):
    with serve(slow, 1) as server:
        waiting, _ = asked(server, pool, 120)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 1
        assert time.monotonic() - began < 30
        status, content = waiting.result()
        assert (status, "try again" in content) == (503, True)
    assert "Requests were not answered within 1 s" in server.log
    assert "Traceback" not in server.log


def test_a_request_whose_body_does_not_come_within_the_drain_is_told_so(slow):
    """No model runs, so only the error of the request shows that something was lost."""
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    with serve(slow, 1) as server, socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(head)
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        answer = client.recv(1 << 16).decode()
        assert server.ended() == 1
    assert answer.startswith("HTTP/1.1 503 "), answer
    assert "Requests were not answered within 1 s" in server.log
    assert "Traceback" not in server.log


def test_a_second_signal_ends_it_at_once(slow, pool):
    with serve(slow, 300) as server:
        waiting, _ = asked(server, pool, 120)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(1.5)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.ended(20) == 1
        assert waiting.result()[0] == 0
    assert "ended by a second signal" in server.log
