"""Shares compiled modules of installed packages among the sessions of one run. Otherwise each would compile jax itself.

In a small session, this would take longer than the tests.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path

import nox

_STORE = tempfile.TemporaryDirectory(prefix="modules-")


@contextmanager
def shared_modules(session: nox.Session) -> Generator[None]:
    """Uses the compiled modules of earlier sessions, and stores the modules that the body has compiled.

    The RECORD of a distribution identifies it, because it contains the digest of each file. Python itself compiles a
    module again if its source has changed.
    """
    location = getattr(session.virtualenv, "location", None)
    sites = sorted(Path(location).glob("lib/python*/site-packages")) if location else []
    modules = [pair for site in sites for pair in _modules(site)]
    for here, kept in modules:
        _link(kept, here)
    yield
    for here, kept in modules:
        _link(here, kept)


def _modules(site: Path) -> Iterator[tuple[Path, Path]]:
    """Yields the path of the compiled file and of the stored copy for each module of an environment."""
    for record in site.glob("*.dist-info/RECORD"):
        content = record.read_bytes()
        kept = Path(_STORE.name, hashlib.sha256(content).hexdigest())
        for line in content.decode().splitlines():
            path = line.partition(",")[0]
            if path.endswith(".py") and not path.startswith(("..", "/", '"')):
                compiled = cache_from_source(path)
                yield site / compiled, kept / compiled


def _link(source: Path, target: Path) -> None:
    if source.exists():
        with suppress(OSError):  # it exists, or the file system cannot link
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
