"""Who holds a lock, and whether that process still exists."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A process, named so that nobody can mistake another one for it.

    Args:
        host: name of the machine.
        machine: one boot of one machine (or container): process ids of different ones cannot be compared.
        pid: process id.
        process_start: start time of the process in clock ticks since the boot; "" where the system does not tell.
        started: when the lock was taken, ISO 8601.
    """

    host: str
    machine: str
    pid: int
    process_start: str
    started: str

    @staticmethod
    def this_process(started: datetime) -> Holder:
        """The calling process."""
        pid = os.getpid()
        return Holder(
            host=platform.node(),
            machine=_machine(),
            pid=pid,
            process_start=_process_start(pid) or "",
            started=started.isoformat(timespec="seconds"),
        )

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Holder:
        """The inverse of `to_json`; other keys are ignored."""
        return Holder(**{field.name: body[field.name] for field in fields(Holder)})

    def alive_here(self) -> bool | None:
        """Whether the process exists; None if it belongs to another machine, so that this one cannot tell."""
        if self.machine != _machine():
            return None
        now = _process_start(self.pid)
        return now is not None and now == self.process_start

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, started {self.started}"


def _machine() -> str:
    """Host name, boot and process namespace: equal exactly where process ids can be compared."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _process_start(pid: int) -> str | None:
    """Start time of a process in clock ticks since the boot, "" where the system does not tell; None if it is gone."""
    if Path("/proc/self/stat").exists():
        try:
            # The second field is the program's name in parentheses and may hold anything; fields are counted after it.
            after_name = (
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            )
        except OSError:
            return None
        return None if after_name[0] in "ZX" else after_name[19]  # a zombie trains no more
    if os.name != "posix":
        return "" if pid == os.getpid() else None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""
