"""Randomly damaged requests are answered with 200 or 4xx, and the server answers a valid request afterwards."""

import collections
import http.client
import json
import random
import socket

import numpy as np
import pytest

from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.protocol import HEADER_LENGTH
from plugins.exporters.tests.live_server import echo, running

PATH = "/v2/models/echo/infer"
WORDS = [b"null", b"-1", b"1e999", b"[]", b"{}", b'"', b"\x00", b"\xff", b"true", b"99999999999999999999"]


def sound():
    chunk = np.ones((1, 2), np.float32).tobytes()
    binary = {"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": len(chunk)}}
    header = json.dumps({"inputs": [binary]}).encode()
    plain = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    return [(header + chunk, {HEADER_LENGTH: str(len(header))}), (json.dumps({"inputs": [plain]}).encode(), {})]


def damaged(body, headers, chance):
    """A request with bytes changed, cut, repeated or replaced by a word, or with another header."""
    content, changed = bytearray(body), dict(headers)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(content) + 1)
        kind = chance.randrange(6)
        if kind == 0 and content:
            content[min(place, len(content) - 1)] = chance.randrange(256)
        elif kind == 1:
            del content[place:]
        elif kind == 2:
            content[place:place] = content[: chance.randrange(40)]
        elif kind == 3:
            content[place : place + chance.randrange(6)] = chance.choice(WORDS)
        elif kind == 4:
            changed[HEADER_LENGTH] = str(chance.choice([0, 1, len(content), len(content) + 1, "x"]))
        else:
            changed["content-encoding"] = chance.choice(["gzip", "deflate", "br", "identity"])
    return bytes(content), changed


def fuzz(count, seed):
    chance, statuses = random.Random(seed), collections.Counter()
    with running({"echo": {"1": echo("float32")}}, limits=Limits(body_bytes=4096, body_seconds=0.2)) as server:
        connection = server.connect()
        for number in range(count):
            body, headers = damaged(*chance.choice(sound()), chance)
            if number % 50 == 1:
                body = b"x" * 5000  # larger than the limit
            if number % 50 == 2:
                with socket.create_connection(("127.0.0.1", server.port)) as slow:
                    slow.settimeout(30)
                    slow.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n".encode())
                    statuses[int(slow.recv(100).split()[1])] += 1
                continue
            try:
                connection.request("POST", PATH, body, headers)
                answer = connection.getresponse()
                answer.read()
                statuses[answer.status] += 1
            except (http.client.HTTPException, ConnectionError):
                statuses["closed"] += 1
                connection.close()
                connection = server.connect()
        connection.close()
        assert server.infer("echo", x=np.ones((1, 2), np.float32))[0] == 200
    return statuses


def check(statuses, count):
    assert sum(statuses.values()) == count
    assert set(statuses) <= {200, 400, 408, 413, 415, "closed"}, statuses
    assert statuses[408] >= count // 50, f"slow clients were not told so: {statuses}"
    assert statuses[413] + statuses["closed"] >= count // 50, f"giant bodies were taken: {statuses}"
    assert statuses["closed"] <= statuses[413] + count // 40, f"connections were closed without an answer: {statuses}"
    assert min(statuses[200], statuses[400], statuses[413], statuses[415]) > 0, statuses


def test_damaged_requests():
    check(fuzz(500, seed=1), 500)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_a_hundred_thousand_damaged_requests(seed):
    statuses = fuzz(25_000, seed)
    print(dict(statuses))
    check(statuses, 25_000)
