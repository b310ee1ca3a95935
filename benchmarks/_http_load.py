"""Clients that send the next request after each answer: one process, raw sockets, connections kept open.

    python benchmarks/_http_load.py PORT CLIENTS SECONDS

Prints JSON: latencies in seconds, failures, and the different answers that each client received, in hexadecimal.
"""

import json
import selectors
import socket
import sys
import time

import numpy as np
from _serving_model import TOKENS, VOCABULARY


def row_of(client):
    """Returns the token ids that a client sends."""
    return np.random.default_rng(client).integers(0, VOCABULARY, size=(1, TOKENS), dtype=np.int32)


def message(client):
    """Returns the bytes of its HTTP request, with tensors in binary."""
    chunk = row_of(client).tobytes()
    tensor = {"name": "ids", "datatype": "INT32", "shape": [1, TOKENS], "parameters": {"binary_data_size": len(chunk)}}
    header = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    head = (
        f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(header) + len(chunk)}\r\n"
        f"Inference-Header-Content-Length: {len(header)}\r\n\r\n"
    )
    return head.encode() + header + chunk


class Client:
    """One connection."""

    def __init__(self, number, port):
        self.request = message(number)
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.answers = set()
        self.started = 0.0

    def ask(self):
        """Sends the request, which is small enough for the buffer of the socket."""
        self.started = time.perf_counter()
        self.socket.sendall(self.request)

    def answer(self):
        """Continues reading. Returns the status and seconds of a complete answer, or None."""
        found = self.socket.recv(65536)
        if not found:
            return 0, time.perf_counter() - self.started
        self.received += found
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if not separator:
            return None
        start = head.lower().index(b"content-length:") + len(b"content-length:")
        if len(body) < int(head[start:].split(b"\r\n", 1)[0]):
            return None
        self.received = b""
        self.answers.add(body)
        return int(head.split(b" ", 2)[1]), time.perf_counter() - self.started


def load(port, clients, seconds):
    """Returns latencies and failures of all requests, and the answers of each client, after all requests end."""
    latencies, failures = [], []
    connected = [Client(number, port) for number in range(clients)]
    waiting = selectors.DefaultSelector()
    for client in connected:
        waiting.register(client.socket, selectors.EVENT_READ, client)
        client.ask()
    end, asking = time.perf_counter() + seconds, clients
    while asking:
        for key, _ in waiting.select(30):
            client = key.data
            found = client.answer()
            if found is None:
                continue
            status, taken = found
            latencies.append(taken)
            if status != 200:
                failures.append(status)
            if status and time.perf_counter() < end:
                client.ask()
            else:
                waiting.unregister(client.socket)
                asking -= 1
    return latencies, failures, [sorted(client.answers) for client in connected]


if __name__ == "__main__":
    port, clients, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    load(port, clients, min(1.0, seconds))
    before = time.process_time()
    latencies, failures, answers = load(port, clients, seconds)
    busy = (time.process_time() - before) / seconds
    hexadecimal = [[answer.hex() for answer in own] for own in answers]
    json.dump({"latencies": latencies, "failures": failures, "answers": hexadecimal, "busy": busy}, sys.stdout)
