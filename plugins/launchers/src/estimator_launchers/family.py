"""A command and all that it starts. A signal reaches all of it: a shell does not pass SIGTERM on to its program."""

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
    """A command in a session of its own. It ends when nothing of it runs.

    What a command leaves running would write beside the next attempt: it is asked to end, and killed after the grace.

    Args:
        command: its words.
        grace_secs: from the end of the command to the end by force of what it has left running.
        env: the environment; None: that of this process.
        output: where standard output and error go; None: where those of this process go.

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
        """The status of the command, as of Popen, when nothing of it runs; else None."""
        status = self._first.poll()
        if status is None:
            return None
        if not _runs(self._first.pid):
            return status
        now = time.monotonic()
        if self._kill_at is None:
            self._kill_at = now + self._grace_secs
            if not self._asked:  # a second SIGTERM would end a process that saves
                self.terminate()
        elif now > self._kill_at:
            self.kill()
        return None

    def terminate(self) -> None:
        """Sends SIGTERM to all."""
        self._asked = True
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to all."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all have just ended
            os.killpg(self._first.pid, number)


def _runs(group: int) -> bool:
    """Whether a process of a group runs. One that has ended, and that nobody has waited for, does not."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS refuses where all have ended
        return False
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    return not stats or any(_is_of(stat, group) for stat in stats)


def _is_of(stat: Path, group: int) -> bool:
    try:
        state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):  # it has just ended
        return False
    return int(its_group) == group and state not in "ZX"
