"""Files and directories: the paths and URLs that users name, and files that appear complete or not at all, survive a
power cut, and disappear as a whole. Before they appear, they have the name of a draft, which identifies their writer.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import platform
import re
import shutil
import stat
import time
import unicodedata
import uuid
from collections.abc import Generator
from pathlib import Path

from estimator_core.errors import ArgumentError

#: A URL, or one with a single slash, to which `Path` reduces two. A single letter may be a drive.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://|([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/]))")
_BESIDE_A_HOST = re.compile(r"(?i:~|localhost)/")

#: The beginning of the names of drafts. No part of a storage's key begins with it.
DRAFT = ".draft-"
_NAME = re.compile(r"([0-9a-f]{12})-([0-9]+)-([0-9]*)-[0-9a-f]{32}(?![^.])")
#: The age in seconds at which an unchanged draft of any machine counts as abandoned.
_LEFT_SECS = 7 * 86400


@contextlib.contextmanager
def draft_of(path: str | os.PathLike[str], *, durable: bool = True) -> Generator[Path]:
    """Yields a path at which to write a file or directory. It gets its final name when the block ends without an error.

    Readers find either the old file or the new one. Any number of processes and machines may write at the same time,
    and the last one wins. Drafts of killed writers of this machine in the directory are removed.

    Args:
        path: the final name, in an existing directory. An existing file is replaced.
        durable: whether the file is flushed to disk before it appears. If not, a power cut may leave an empty file.

    Yields:
        An unused path in the same directory, with the same suffix.

    Raises:
        OSError: the path cannot be written, or is a directory that is not empty.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "scores.csv")
        >>> with draft_of(path) as draft:
        ...     _ = draft.write_text("score")
        ...     path.exists()
        False
        >>> path.read_text()
        'score'
    """
    path = Path(path)
    remove_left(path.parent)
    draft = path.with_name(draft_name() + path.suffix)
    try:
        yield draft
        for file in filter(Path.is_file, (draft, *draft.rglob("*"))) if durable else ():
            flush(file)
        draft.replace(path)
        if durable:
            sync_directory(path.parent)
    finally:
        _remove(draft)


def draft_name(prefix: str = DRAFT) -> str:
    """Returns a new name that identifies its writer.

    Example:
        >>> draft_name("temp-").startswith("temp-")
        True
    """
    pid = os.getpid()
    return f"{prefix}{_this_machine(pid)}-{pid}-{identity(pid)[1]}-{uuid.uuid4().hex}"


def remove_left(directory: Path, prefix: str = DRAFT) -> None:
    """Removes drafts whose writers on this machine have ended, and those that have not changed for a week."""
    with contextlib.suppress(OSError):  # writing reports the fault of the directory
        for name in os.listdir(directory):
            if name.startswith(prefix) and (found := _NAME.match(name, len(prefix))):
                left = time.time() - (directory / name).lstat().st_mtime > _LEFT_SECS
                if found[1] == _this_machine(os.getpid()) and not is_hidden(int(found[2])):
                    left = process_start(int(found[2])) != found[3]
                if left:
                    _remove(directory / name)


def write_durably(path: Path, data: bytes) -> None:
    """Writes a new file and flushes it to the disk."""
    path.write_bytes(data)
    flush(path)


def read_regular(path: Path) -> bytes:
    """Reads a file. A link, a FIFO or a device in its place is refused without blocking.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()


def remove_tree(path: Path) -> None:
    """Deletes a directory if it exists."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def flush(path: Path) -> None:
    """Flushes a file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Flushes the names in a directory to the disk, if the system supports it."""
    with contextlib.suppress(OSError):
        flush(path)


@functools.lru_cache(maxsize=1)
def identity(pid: int) -> tuple[str, str]:
    """Returns the machine and the start time of this process, which has the id `pid`. A fork has another identity."""
    return machine(), process_start(pid) or ""


def machine() -> str:
    """Returns host name, boot and process namespace. They are equal exactly if process ids can be compared."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def process_start(pid: int) -> str | None:
    """Returns the start of a process in clock ticks since the boot; "" if unknown, None if the process has ended."""
    if Path("/proc/self/stat").exists():
        try:
            # The second field is the program's name in parentheses and may contain any text, so fields are counted
            # after it.
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


def is_hidden(pid: int) -> bool:
    """Returns whether a process of another user exists whose details the system hides, like /proc with hidepid."""
    if process_start(pid) is None and os.name == "posix":
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except (OSError, OverflowError):
            pass
    return False


def _this_machine(pid: int) -> str:
    return hashlib.sha256(identity(pid)[0].encode()).hexdigest()[:12]


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)  # has no effect on a file
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def scheme_of(location: str) -> str:
    """Returns the scheme of a URL, in lower case; "" for a path.

    Example:
        >>> scheme_of("S3://bucket/run"), scheme_of("runs/one")
        ('s3', '')
    """
    match = _URL.match(location)
    return (match[1] or match[2]).lower() if match else ""


def located(location: str | os.PathLike[str]) -> str:
    """Returns a path or URL as text. The slash that `Path` removed from a URL is restored.

    Example:
        >>> import pathlib
        >>> located(pathlib.Path("s3://bucket/run")), located("file:/runs/one"), located("runs/one")
        ('s3://bucket/run', 'file:///runs/one', 'runs/one')
    """
    text = os.fspath(location)
    match = _URL.match(text)
    if match is None or match[1]:
        return text
    rest = text[match.end() :]
    host = "/" if match[2].lower() == "file" and not _BESIDE_A_HOST.match(rest) else ""
    return f"{match[2]}://{host}{rest}"


def is_url(location: str) -> bool:
    """Returns whether a location is a URL and not a path.

    Example:
        >>> is_url("s3://bucket/run"), is_url("s3:/bucket/run"), is_url("runs/one")
        (True, True, False)
    """
    return scheme_of(location) != ""


def expanded(location: str) -> str:
    """Returns a path with `~` expanded, or a URL with both slashes.

    Example:
        >>> expanded("s3://bucket/~name")
        's3://bucket/~name'
    """
    return located(location) if is_url(location) else os.path.expanduser(location)


def on_one_line(what: str, location: str) -> str:
    """Returns the location, which tables and logs can show unchanged.

    Raises:
        ArgumentError: the location has a line break or a control character.

    Example:
        >>> on_one_line("model_dir", "runs/one")
        'runs/one'
    """
    if any(unicodedata.category(one) in ("Cc", "Zl", "Zp") for one in location):
        raise ArgumentError(f"{what} has a line break or a control character, given: {location!r}.")
    return location


def check_local(argument: str, path: str) -> None:
    """Refuses a URL where a directory of this machine is needed.

    Args:
        argument: the name of the argument, for messages.
        path: the value of the user.

    Raises:
        ArgumentError: the value is a URL. Without this check a folder named `gs:` would appear, and the run would write
            there.

    Example:
        >>> check_local("compile_cache", "runs/one")
    """
    if scheme := scheme_of(path):
        raise ArgumentError(
            f"{argument} is {path!r}, but {scheme}:// is not supported: a directory of this machine is needed. Mount "
            "the bucket, or train into a local directory and copy it."
        )
