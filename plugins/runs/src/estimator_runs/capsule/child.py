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
    """Returns the exit code of a process that does not outlive this one: SIGTERM and SIGINT to this process kill it.

    Args:
        command: the command to run.
        environ: the environment of the process.
        directory: the working directory; None: the current one.
        output: the target of standard output, as for `Popen`. The default is the standard error of this process.
        errors: the target of standard error; None: the standard error of this process.
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
    """Lets SIGTERM kill a process before it ends this one, within the block. Signals reach the main thread only."""
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
