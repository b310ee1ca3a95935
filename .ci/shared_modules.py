"""Compiled modules of installed packages, which the sessions of one run share: each would compile jax for itself.

A small session would spend more time with that than with its tests.
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
    """Takes the compiled modules that an earlier session has left, and leaves those that the body has compiled.

    A distribution is known by its RECORD, which holds the digest of each file. Python itself compiles a module again
    whose source is another one.
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
    """Of each module of an environment, where it is compiled, and where that is kept."""
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
        with suppress(OSError):  # it is there, or a file system cannot link
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
