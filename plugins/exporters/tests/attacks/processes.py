"""An attacked server, an idle one beside it, and what a probe saw of both."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[3]


class Attacked:
    """A server process."""

    def __init__(self, process, port):
        self.process, self.port = process, port
        self.before = self.memory("VmRSS")

    def memory(self, what="VmHWM"):
        """Bytes that the process holds now (VmRSS), or held at most (VmHWM)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"{what}:"))
        return int(line.split()[1]) * 1024

    @property
    def grown(self):
        """Bytes that it held at most beyond what it held before it was asked anything."""
        return self.memory() - self.before

    def connect(self, seconds=60):
        """A connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)


@contextlib.contextmanager
def child(*command):
    """A Python process; it ends when its input does."""
    sources = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, *command], stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.stdin.close()


@contextlib.contextmanager
def serving(*sources, **limits):
    """A server of its own, with models of sources beside those that are attacked."""
    with child(str(HERE / "serve.py"), json.dumps(limits), *sources) as process:
        yield Attacked(process, int(process.stdout.readline()))


@contextlib.contextmanager
def bare():
    """A bare server of asyncio."""
    with child(str(HERE / "bare.py")) as process:
        yield Attacked(process, int(process.stdout.readline()))


@contextlib.contextmanager
def probed(*servers):
    """Yields a list; the answering times of each server, sorted, are in it afterwards."""
    found = []
    with child(str(HERE / "probe.py"), *(str(server.port) for server in servers)) as process:
        assert process.stdout.readline() == "ready\n"
        yield found
        process.stdin.close()
        times = json.loads(process.stdout.read())
    found += [sorted(times[str(server.port)]) for server in servers]


def quantile(times, part):
    """The value below which a part of sorted times lies."""
    return times[min(len(times) - 1, int(part * len(times)))]
