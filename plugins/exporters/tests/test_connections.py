"""The heads of requests are limited in size and time, as bodies are."""

import socket

import numpy as np
import pytest

from estimator_exporters.serving.limits import Limits
from plugins.exporters.tests.live_server import echo, running

HEAD = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def server():
    with running({"echo": {"1": echo("float32")}}, limits=Limits(body_seconds=0.3, head_bytes=2000)) as found:
        yield found


def exchange(server, *pieces):
    """The bytes that the server sends after it receives some pieces, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(30)
        for piece in pieces:
            connection.sendall(piece)
        received = b""
        while more := connection.recv(4096):
            received += more
    assert server.infer("echo", x=np.ones((1, 2), np.float32))[0] == 200, "the server did not live on"
    return received


def test_a_client_that_says_nothing_is_sent_away(server):
    assert exchange(server).startswith(b"HTTP/1.1 408")


def test_a_slow_head_is_408(server):
    found = exchange(server, HEAD)
    assert found.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within 0.3 s" in found


def test_a_slow_second_head_on_a_connection_is_408(server):
    first = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    found = exchange(server, first, HEAD)
    assert found.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in found


def test_an_endless_head_is_431(server):
    assert exchange(server, HEAD, b"X-Long: " + b"x" * 3000).startswith(b"HTTP/1.1 431")


def test_no_http_is_400(server):
    assert exchange(server, b"\x00\x01\x02 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_a_long_head_within_the_limit_is_read(server):
    long = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: " + b"x" * 1500
    assert exchange(server, long, b"\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "length", [b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"]
)
def test_a_body_below_a_head_that_asks_for_another_protocol_is_refused_by_its_cause(server, length):
    """HttpClient of Java sends this. The parser would drop the body, and the error would report invalid JSON."""
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n"
    found = exchange(server, HEAD + upgrade + length)
    assert found.startswith(b"HTTP/1.1 400")
    assert b"must not ask for another protocol (Upgrade)" in found


def test_a_head_alone_may_ask_for_another_protocol(server):
    head = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n"
    for end in (b"\r\n", b"Content-Length: 0\r\n\r\n"):
        assert exchange(server, head + end).startswith(b"HTTP/1.1 200")
