"""Attacks as functions of a server. Each takes a few seconds and leaves no connection open."""

import contextlib
import gzip
import socket
import time

MEGABYTE = 2**20


def post(path, body, *headers):
    """A POST request as the bytes of HTTP."""
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def tensor(values, count):
    """A request of `count` values in JSON, in two columns."""
    head = f'{{"inputs":[{{"name":"x","datatype":"FP32","shape":[{count // 2},2],"data":['
    return head.encode() + values + b"]}]}"


BOMB = gzip.compress(tensor(b"0," * 31_500_000 + b"0", 31_500_001), 9)


def inflating(server):
    """59 KB that inflate to 63 MB of JSON."""
    with server.connect() as connection, contextlib.suppress(ConnectionError):
        connection.sendall(post("/v2/models/echo/infer", BOMB, "Content-Encoding: gzip"))
        assert connection.recv(100).startswith((b"HTTP/1.1 413", b"HTTP/1.1 429"))


def large_bodies(server):
    """64 connections that announce 64 MB each and send a part of it."""
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (64 * MEGABYTE)
    with contextlib.ExitStack() as opened:
        connections = [opened.enter_context(server.connect()) for _ in range(64)]
        for connection in connections:
            connection.sendall(head)
            connection.setblocking(False)
        for _ in range(32):
            for connection in connections:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    connection.send(b"x" * 2**18)
            time.sleep(0.05)


def trailers(server):
    """Trailers of a chunked body without end."""
    with server.connect() as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"1\r\nx\r\n0\r\nt: ")
        for _ in range(1000):
            connection.sendall(b"x" * 60_000)


def slow(server):
    """100 heads that arrive byte by byte."""
    with contextlib.ExitStack() as opened:
        connections = [opened.enter_context(server.connect()) for _ in range(100)]
        for letter in b"POST /v2/models/echo/infer HTTP/1.1":
            for connection in connections:
                with contextlib.suppress(ConnectionError):
                    connection.send(bytes([letter]))
            time.sleep(0.05)


def taking_nothing(server):
    """Requests for answers of 8 MB that the client does not read."""
    body = tensor(b"1,2", 2)[:-1] + b',"parameters":{"binary_data_output":true}}'
    with contextlib.ExitStack() as opened:
        for _ in range(8):
            connection = opened.enter_context(server.connect())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
            connection.sendall(post("/v2/models/wide/infer", body))
        time.sleep(2)


ATTACKS = (inflating, large_bodies, trailers, slow, taking_nothing)
