"""Lines of a growing file, and of a whole job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

_POLL_SECS = 0.1


def follow_file(path: Path, ended: Callable[[], bool]) -> Iterator[str]:
    """Lines of a file as they are written, without line ends; stops when the file is read and `ended()`.

    Args:
        path: the path of the file, which may appear later.
        ended: whether no process writes any longer.
    """
    rest = b""
    offset = 0
    while True:
        last = ended()  # asked first, so that everything written before the end is read
        if path.exists():
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
            offset += len(data)
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        if last:
            if rest:
                yield rest.decode(errors="replace")
            return
        time.sleep(_POLL_SECS)
