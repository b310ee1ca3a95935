"""A process that ends with this one."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO


def exit_code(
    command: Sequence[str],
    environ: Mapping[str, str],
    directory: Path | None,
    *,
    output: int = 2,
    errors: IO[str] | None = None,
) -> int:
    """The exit code of a process that does not outlive this one: SIGTERM and SIGINT to this process kill it.

    Args:
        command: what is run.
        environ: its environment.
        directory: where; None: here.
        output: where what it prints goes, as for `Popen`; by default to the standard error.
        errors: where what it prints to the standard error goes; None: there.
    """
    with (
        subprocess.Popen(command, env=environ, cwd=directory, stdout=output, stderr=errors) as process,
        _killed_by_sigterm(process),
    ):
        try:
            return process.wait()
        except BaseException:  # KeyboardInterrupt
            process.kill()
            raise


@contextlib.contextmanager
def _killed_by_sigterm(process: subprocess.Popen[bytes]) -> Generator[None]:
    """Within the block, SIGTERM kills a process before it ends this one. Signals reach the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        process.kill()
        signal.signal(number, before)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, end) or signal.SIG_DFL
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
