"""One training run per model_dir: a lock file that names its holder and never stops readers.

A process that finds a lock file checks whether the holder still exists.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import threading
import uuid
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from estimator_core._files import draft_of, identity, is_hidden, machine, process_start
from estimator_core.errors import ModelDirLockedError

LOCK_FILE = "run.lock"
_log = logging.getLogger("estimator_core.checkpoint")


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A process, identified so that no other process can be mistaken for it.

    Args:
        host: the name of the machine.
        machine: an identifier of one boot of one machine (or container). Process ids are comparable only within it.
        pid: the process id.
        process_start: the start time of the process in clock ticks since the boot; "" if the system does not report it.
        started: the time at which the lock was taken, ISO 8601.
    """

    host: str
    machine: str
    pid: int
    process_start: str
    started: str

    @staticmethod
    def this_process(started: datetime) -> Holder:
        """Returns the calling process."""
        pid = os.getpid()
        where, began = identity(pid)
        return Holder(
            host=platform.node(),
            machine=where,
            pid=pid,
            process_start=began,
            started=started.isoformat(timespec="seconds"),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the holder as a JSON object."""
        return asdict(self)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Holder:
        """Reads a holder from a JSON object. Other keys are ignored."""
        return Holder(**{field.name: body[field.name] for field in fields(Holder)})

    def alive_here(self) -> bool | None:
        """Returns whether the process exists; None if that is unknown, because it is on another machine or hidden by
        the system.
        """
        if self.machine != machine() or is_hidden(self.pid):
            return None
        now = process_start(self.pid)
        return now is not None and now == self.process_start

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, started {self.started}"


class ModelDirLock:
    """Owns a model_dir while the context is open. Readers (evaluators, TensorBoard) need no lock.

    A lock is taken over if its holder has ended. On the same machine, the process id and the start time decide. For
    another machine, the age of the heartbeat decides: the modification time of the file, renewed in the background.

    Args:
        model_dir: the directory. It is created if it does not exist.
        heartbeat_secs: the seconds between two renewals of the heartbeat.
        stale_secs: the age in seconds at which the lock of another machine counts as abandoned.

    Raises:
        ModelDirLockedError: (on entry) another run is training here. The message has its host, process and start time.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as model_dir, ModelDirLock(model_dir):
        ...     with ModelDirLock(model_dir):
        ...         pass
        Traceback (most recent call last):
        ...
        estimator_core.errors.ModelDirLockedError: Another run is training in ...
    """

    def __init__(
        self, model_dir: str | os.PathLike[str], *, heartbeat_secs: float = 15.0, stale_secs: float = 120.0
    ) -> None:
        self._path = Path(model_dir) / LOCK_FILE
        self._heartbeat_secs = heartbeat_secs
        self._stale_secs = stale_secs
        self._token = ""
        self._pid = os.getpid()
        self._released = threading.Event()
        self._heartbeat: threading.Thread | None = None

    def acquire(self) -> None:
        """Takes the lock, or raises ModelDirLockedError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._token, self._pid = uuid.uuid4().hex, os.getpid()
        with _one_at_a_time(self._path.parent):
            self._refuse_if_held()
            self._write()
        self._released.clear()
        self._heartbeat = threading.Thread(target=self._keep_alive, name="model-dir-lock", daemon=True)
        self._heartbeat.start()

    def release(self) -> None:
        """Releases the lock. Does nothing if it is not held."""
        if self._heartbeat is None or os.getpid() != self._pid:  # a forked worker is not the holder
            return
        self._released.set()
        self._heartbeat.join()
        self._heartbeat = None
        with contextlib.suppress(OSError), _one_at_a_time(self._path.parent):
            if self.held():
                self._path.unlink()

    def held(self) -> bool:
        """Returns whether this object still owns the model_dir: False after the lock was taken over or deleted."""
        record = _read(self._path)
        return record is not None and record[0] == self._token

    def __enter__(self) -> ModelDirLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _refuse_if_held(self) -> None:
        record = _read(self._path)
        if record is None:
            return
        holder = record[1]
        alive = holder.alive_here()
        age = self._age()
        if alive is None:
            alive = age < self._stale_secs
        if not alive:
            _log.warning("Took over the lock of %s: %s is gone.", self._path.parent, holder)
            return
        wait = (
            ""
            if holder.alive_here()
            else f" (its last sign of life was {age:.0f} s ago; after {self._stale_secs:.0f} s it counts as gone)"
        )
        raise ModelDirLockedError(
            f"Another run is training in {self._path.parent}: {holder}{wait}. Wait for it, stop it, or use another "
            f"model_dir. If you are sure that it is gone, delete {self._path}."
        )

    def _write(self) -> None:
        body = {"token": self._token, **Holder.this_process(datetime.now(UTC)).to_json()}
        with draft_of(self._path, durable=False) as draft:
            draft.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")

    def _age(self) -> float:
        """Returns the seconds since the last heartbeat, only by the clock of the file system, because machines' clocks
        differ.
        """
        probe = self._path.with_name(f".{LOCK_FILE}.{self._token}")
        try:
            probe.touch()
            return probe.stat().st_mtime - self._path.stat().st_mtime
        except OSError:
            return 0.0
        finally:
            probe.unlink(missing_ok=True)

    def _keep_alive(self) -> None:
        while not self._released.wait(self._heartbeat_secs):
            with contextlib.suppress(OSError):  # the directory may be gone, or the file system unreachable for a while
                if self.held():
                    os.utime(self._path)


def is_held(model_dir: str | os.PathLike[str]) -> bool:
    """Returns whether a run is training in a model_dir, as far as this machine can determine.

    Example:
        >>> is_held("a/directory/that/does/not/exist")
        False
    """
    record = _read(Path(model_dir) / LOCK_FILE)
    return record is not None and record[1].alive_here() is not False


def _read(path: Path) -> tuple[str, Holder] | None:
    """Returns the token and the holder of a lock file; None if the file does not exist or is damaged."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return str(body["token"]), Holder.from_json(body)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        _log.warning("The lock file %s is damaged; it is replaced.", path)
        return None


@contextlib.contextmanager
def _one_at_a_time(directory: Path) -> Generator[None]:
    """Lets one process at a time read a lock and replace it, with a short advisory lock of the directory.

    The kernel releases it even if the process is killed. File systems without such locks leave a gap of microseconds.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
