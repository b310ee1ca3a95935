"""What tells processes apart, on this machine and from those of others."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from pathlib import Path


@functools.lru_cache(maxsize=1)
def identity(pid: int) -> tuple[str, str]:
    """The machine and the start time of this process, which has the id `pid`. A fork of it has another one."""
    return machine(), process_start(pid) or ""


def machine() -> str:
    """Host name, boot and process namespace: equal exactly if process ids can be compared."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def process_start(pid: int) -> str | None:
    """Start time of a process in clock ticks since the boot; "" if it is not known, None if the process is gone."""
    if Path("/proc/self/stat").exists():
        try:
            # The second field is the program's name in parentheses and may hold anything; fields are counted after it.
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            after_name = text.rpartition(")")[2].split()
        except OSError:
            return None
        return None if after_name[0] in "ZX" else after_name[19]  # a zombie no longer trains
    if os.name != "posix":
        return "" if pid == os.getpid() else None
    try:
        os.kill(pid, 0)
    except OSError as error:
        return None if isinstance(error, ProcessLookupError) else ""
    return ""
