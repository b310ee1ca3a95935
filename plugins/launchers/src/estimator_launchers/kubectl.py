"""Calls kubectl, once or for as long as pods run. Interrupted streams continue."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from estimator_launchers.errors import LaunchError

_Moment = tuple[datetime, str]


def kubectl(*arguments: str, given: str | None = None) -> str:
    """Returns the standard output of one command.

    Args:
        *arguments: the arguments of kubectl.
        given: the text for standard input.

    Raises:
        LaunchError: kubectl is missing, or fails.
    """
    if shutil.which("kubectl") is None:
        raise LaunchError(
            "kubectl is not installed here. Print the manifests with --dry-run, and apply them where it is installed."
        )
    done = subprocess.run(["kubectl", *arguments], input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LaunchError(f"kubectl {arguments[0]} fails: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class PodLog:
    """The log of a pod, each line once. An interrupted stream continues after its last line.

    Servers end a stream after some hours, when the log file is rotated, and when they restart.

    Args:
        pod: the name of the pod.
        options: the options that select its namespace.
    """

    def __init__(self, pod: str, *options: str) -> None:
        self.pod, self._options = pod, options
        self._last: _Moment | None = None
        self._asked = False

    def new(self, *, over: bool) -> Iterator[str]:
        """Yields the lines since the last call, until the stream ends.

        Args:
            over: whether the pod had ended before the call. If so, an unfinished line is its last one. Otherwise the
                line is read again by the next call.
        """
        since = () if self._last is None else (f"--since-time={self._last[1]}",)  # kubectl compares whole seconds
        before, command = self._last, ["kubectl", "logs", "--follow", "--timestamps", self.pod, *self._options, *since]
        told = subprocess.DEVNULL if self._asked else None  # a lasting fault is shown once
        self._asked = True
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told) as child:
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    if not (over or line.endswith(b"\n")):
                        return
                    moment, text = _divided(line.decode(errors="replace").rstrip("\r\n"))
                    if moment is None or before is None or moment > before:
                        self._last = moment or self._last
                        yield from text.split("\r")  # a progress bar
            finally:
                child.kill()  # a caller that stops early does not wait for the end of the pod


def _divided(line: str) -> tuple[_Moment | None, str]:
    """Returns the time of a line, and its text. The time is kept as text too, because the parsed one has no
    nanoseconds.
    """
    stamp, _, text = line.partition(" ")
    try:
        return (datetime.fromisoformat(stamp), stamp), text
    except ValueError:  # a message of the server instead of a line
        return None, line


class WatchedPods:
    """Streams the changes of pods from kubectl, because a pod that has ended may be gone at the next query.

    Args:
        selected: the options that select the pods.
    """

    def __init__(self, selected: list[str]) -> None:
        self._command = ["kubectl", "get", "pods", *selected, "--watch", "-o", "json"]

    def __enter__(self) -> WatchedPods:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def changes(self, secs: float) -> Iterator[dict[str, Any]]:
        """Yields the pods that have changed, for about `secs` seconds.

        The server ends a watch within an hour. The next watch begins with the current state of all pods.
        """
        until = time.monotonic() + secs
        ended = self._child.poll() is not None  # checked first, so that everything it wrote is read
        while (left := until - time.monotonic()) > 0:
            try:
                self._rest = (self._rest + self._texts.get(timeout=left)).lstrip()
            except queue.Empty:
                break
            while self._rest:
                try:
                    found, end = json.JSONDecoder().raw_decode(self._rest)
                except ValueError:  # the rest of the object has not arrived yet
                    break
                self._rest = self._rest[end:].lstrip()
                yield from found.get("items", [found])
        if ended and self._texts.empty():
            self._end()
            self._start()

    def _start(self) -> None:
        self._rest, self._texts = "", queue.Queue[str]()
        self._child = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._reader = threading.Thread(target=self._read, args=(self._child, self._texts), daemon=True)
        self._reader.start()

    def _end(self) -> None:
        self._child.kill()
        self._reader.join()
        self._child.wait()

    @staticmethod
    def _read(child: subprocess.Popen[str], texts: queue.Queue[str]) -> None:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                texts.put(line)
