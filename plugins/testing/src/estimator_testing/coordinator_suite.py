"""The suite for coordinators."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from estimator_testing.suite import Suite


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process of the suite ended.

    Attributes:
        status: the exit status, or None if it had to be killed.
        seen: its report, or None without a report.
        output: everything that it wrote.
    """

    status: int | None
    seen: Mapping[str, Any] | None
    output: str


class CoordinatorSuite(Suite):
    """Proves that processes agree in order, name a lost process and end together. Subclass it and set `connects`.

    Attributes:
        connects: the `module:name` of the function of the component. The two or three processes of the tests import it.
        options: the options of its plugin. Choose a short time of silence before a loss, because the suite kills and
            freezes.
        silence: the seconds within which a killed or frozen process is named.
        start: the further seconds in which a process begins and ends.

    Example:
        >>> class TestMine(CoordinatorSuite):
        ...     connects = "acme_cluster:connect"
        ...     options = {"heartbeat_secs": 2}
    """

    connects: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    silence: ClassVar[float] = 30.0
    start: ClassVar[float] = 60.0

    def test_all_agree_in_order(self, tmp_path: Path) -> None:
        """Each process gets the values of all, in order, at each use of a topic, and also the value of process 0."""
        ended = self._play("agreements", 3, tmp_path)
        for index, process in enumerate(ended):
            assert process.seen is not None, process.output
            assert process.seen["process"] == [index, 3]
            assert process.seen["values"] == [[f"{other}:{turn}" for other in range(3)] for turn in range(6)]
            assert process.seen["told"] == ["0:0", "0:1"]
            assert process.seen["long"] == [200_000] * 3
            assert process.seen["lost"] is False

    def test_a_late_process_is_named(self, tmp_path: Path) -> None:
        """A wait ends after its timeout, and names the process that has not arrived."""
        first, _ = self._play("late", 2, tmp_path)
        assert first.seen is not None, first.output
        assert (first.seen["index"], 1.0 <= first.seen["seconds"] < 3.0) == (1, True), first.seen

    def test_a_failed_process_is_named(self, tmp_path: Path) -> None:
        """An error in one process ends the waits of the others within seconds. They see its first line."""
        first, failed = self._play("failing", 2, tmp_path)
        assert failed.status == 1, failed.output
        self._names(first, 1, 15.0)
        assert first.seen is not None
        assert "the disk is full" in first.seen["reason"], first.seen
        assert "and more" not in first.seen["reason"]

    def test_a_killed_process_is_named(self, tmp_path: Path) -> None:
        """All others learn that a process was killed, and end."""
        first, second, _ = self._play("killed", 3, tmp_path)
        for survivor in (first, second):
            self._names(survivor, 2, self.silence)
            assert survivor.status not in (0, None), survivor.output

    def test_a_frozen_process_is_named(self, tmp_path: Path) -> None:
        """All others learn that a process fell silent, and end."""
        first, _ = self._play("frozen", 2, tmp_path, frozen=(1,))
        self._names(first, 1, self.silence)
        assert first.status not in (0, None), first.output

    def test_who_ends_is_lost_only_to_who_waits(self, tmp_path: Path) -> None:
        """A process that ends normally is not a loss, until another process waits for it."""
        first, left = self._play("leaving", 2, tmp_path)
        assert left.status == 0, left.output
        assert first.seen is not None, first.output
        assert first.seen["before"] is False, "it was reported as lost, but it had ended normally"
        self._names(first, 1, 15.0)

    def test_who_has_ended_is_not_the_one_who_was_killed(self, tmp_path: Path) -> None:
        """When a process was killed after another one ended normally, the killed one is named, however late."""
        first, left, _ = self._play("leaving_before_a_kill", 3, tmp_path)
        assert left.status == 0, left.output
        assert first.seen is not None, first.output
        assert first.seen["index"] == 2, f"process 2 was killed, and process 1 ended before; {first.seen}"

    def test_process_0_may_end_first(self, tmp_path: Path) -> None:
        """The others continue when process 0 has nothing more to do, and all end normally."""
        for process in self._play("first_ends_first", 2, tmp_path):
            assert process.status == 0, process.output
            assert process.seen is not None
            assert process.seen["lost"] is False, process.output

    def _names(self, process: Ended, index: int, seconds: float) -> None:
        seen = process.seen
        assert seen is not None, process.output
        assert seen["index"] == index, f"{seen}: process {index} should be named"
        assert seen["seconds"] < seconds, seen
        assert f"Process {index} of" in seen["text"], seen["text"]

    def _play(self, scene: str, count: int, folder: Path, frozen: Sequence[int] = ()) -> list[Ended]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
        settings = {"connects": self.connects, "options": dict(self.options), "scene": scene, "address": address}
        environment = {
            **{name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "XLA_FLAGS")},
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "ESTIMATOR_RUN_SECRET": "of the suite",
        }
        command = [sys.executable, "-m", "estimator_testing.coordinator_worker"]
        processes = [
            subprocess.Popen(
                [*command, json.dumps({**settings, "count": count, "index": index})],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for index in range(count)
        ]
        ended = {
            index: _ended(processes[index], self.start + self.silence) for index in range(count) if index not in frozen
        }
        ended |= {index: _ended(processes[index], 0.0) for index in frozen}
        return [ended[index] for index in range(count)]


def _ended(process: subprocess.Popen[str], seconds: float) -> Ended:
    status: int | None = None
    try:
        output, _ = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    lines = [line for line in output.splitlines() if line.startswith('{"process"')]
    return Ended(status=status, seen=json.loads(lines[-1]) if lines else None, output=output)
