"""The kinds of requests: good ones with their correct answer, wrong, slow, oversized and cancelled ones.

Each is a function of a number that its answer holds. It returns the path, the body, the headers, what is right (a
status, or a check of the body of a 200), and how it is sent.
"""

import gzip
import json
import struct
import time

JSON_HEAD = {"Content-Type": "application/json"}
MEGABYTE = 2**20
TOO_LONG = 65 * MEGABYTE  # --max-body-mb is 64
PIECES, PAUSE = 4, 0.01
CANCELLED = object()


def floats(found):
    return json.loads(found)["outputs"][0]["data"]


def as_json(number):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [number, 0.5]}]}
    return "/v2/models/echo/infer", json.dumps(body).encode(), JSON_HEAD, lambda found: floats(found) == [number, 0.5]


def compressed(number):
    path, body, headers, right = as_json(number)
    return path, gzip.compress(body), {**headers, "Content-Encoding": "gzip"}, right


def binary(number):
    head = {"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
    text = json.dumps({"inputs": [head]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}
    values = struct.pack("<2f", number, 0.5)
    return "/v2/models/echo/infer", text + values, headers, lambda found: floats(found) == [number, 0.5]


def text(number):
    body = {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1], "data": [f"t{number}"]}]}
    right = lambda found: json.loads(found)["outputs"][0]["data"] == [f"t{number}"]  # noqa: E731
    return "/v2/models/text/infer", json.dumps(body).encode(), JSON_HEAD, right


def tensorflow(number):
    body = json.dumps({"instances": [[number, 0.5]]}).encode()
    right = lambda found: json.loads(found)["predictions"] == [[number, 0.5]]  # noqa: E731
    return "/v1/models/echo:predict", body, JSON_HEAD, right


def slow(number):
    """A good request whose body is sent in pieces."""
    path, body, headers, right = as_json(number)
    size = -(-len(body) // PIECES)

    def pieces():
        for start in range(0, len(body), size):
            time.sleep(PAUSE)
            yield body[start : start + size]

    return path, pieces(), {**headers, "Content-Length": str(len(body))}, right


def wrong(number):
    return "/v2/models/echo/infer", b'{"inputs": [', JSON_HEAD, 400


def unknown(number):
    return "/v2/models/nobody/infer", b"{}", JSON_HEAD, 404


def oversized(number):
    """A request whose Content-Length is too large. The bytes of the body that it sends contain its number."""
    return "/v2/models/echo/infer", b"%d" % number, {**JSON_HEAD, "Content-Length": str(TOO_LONG)}, 413


def cancelled(number):
    """A request whose client closes the connection after a part of the body, or after all of it."""
    path, body, headers, _ = as_json(number)
    sent = body[: len(body) // 2] if number % 2 else body
    return path, sent, {**headers, "Content-Length": str(len(body))}, CANCELLED


GOOD = (as_json, compressed, binary, text, tensorflow, slow)
KINDS = (as_json, compressed, binary, text, tensorflow, slow, wrong, unknown, oversized, cancelled)
# The kinds that the model "echo" answers with 200.
OF_ECHO = ("as_json", "compressed", "binary", "tensorflow", "slow")
