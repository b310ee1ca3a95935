"""A command and all processes that it starts. Signals go to all of them, because a shell does not pass SIGTERM on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


class Family:
    """A command in a session of its own. It has ended when all of its processes have ended.

    Processes that a command leaves running would write at the same time as the next attempt. They receive SIGTERM, and
    are killed after the grace time.

    Args:
        command: the program and its arguments.
        grace_secs: the seconds between the end of the command and the forced end of the processes that it leaves
            running.
        env: the environment. None: that of this process.
        output: the file for standard output and error. None: those of this process.

    Raises:
        OSError: the command cannot be started.

    Example:
        >>> family = Family(("true",), grace_secs=1.0)
        >>> while (status := family.poll()) is None:
        ...     time.sleep(0.01)
        >>> status
        0
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        grace_secs: float,
        env: Mapping[str, str] | None = None,
        output: IO[bytes] | None = None,
    ) -> None:
        self._grace_secs = grace_secs
        self._asked = False
        self._kill_at: float | None = None
        self._first = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            start_new_session=True,
        )

    def poll(self) -> int | None:
        """Returns the status of the command, as Popen does, when all of its processes have ended, else None."""
        status = self._first.poll()
        if status is None:
            return None
        if not _runs(self._first.pid):
            return status
        now = time.monotonic()
        if self._kill_at is None:
            self._kill_at = now + self._grace_secs
            if not self._asked:  # a second SIGTERM would end a process that is saving
                self.terminate()
        elif now > self._kill_at:
            self.kill()
        return None

    def terminate(self) -> None:
        """Sends SIGTERM to all processes."""
        self._asked = True
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to all processes."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all have just ended
            os.killpg(self._first.pid, number)


def _runs(group: int) -> bool:
    """Returns whether a process of a group runs. Zombies do not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS refuses if all have ended
        return False
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    return not stats or any(_is_of(stat, group) for stat in stats)


def _is_of(stat: Path, group: int) -> bool:
    try:
        state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):  # it has just ended
        return False
    return int(its_group) == group and state not in "ZX"
