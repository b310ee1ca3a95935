"""Compiled programs kept on disk, so that a second process starts without compiling again."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
from pathlib import Path
from typing import Literal

import jax
from jax.experimental.compilation_cache import compilation_cache

_log = logging.getLogger("estimator_core")
#: Programs that compile faster are cheaper to compile than to look up.
MIN_COMPILE_SECS = 0.1


def use_compile_cache(where: str | Literal["auto"] | None) -> None:
    """Points jax at the directory of compiled programs. A cache the process has configured itself stays.

    Args:
        where: a directory; "auto", the one of this user and this kind of processor; None, no cache.

    Example:
        >>> use_compile_cache(None)

    A directory that others can write to lets them run code here, so the one of "auto" belongs to the user alone.
    """
    current = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if where is None or (where == "auto" and current is not None):
        return
    directory = default_directory() if where == "auto" else Path(where).expanduser().absolute()
    if str(directory) == current:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        _log.warning("compiled programs are not kept: %s; see RunConfig(compile_cache=...)", error)
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_COMPILE_SECS)
    compilation_cache.reset_cache()  # jax looks at the setting only when it first compiles
    _log.debug("compiled programs are kept in %s", directory)


def default_directory() -> Path:
    """The directory of "auto": one for each kind of processor, since compiled programs use what it can do.

    Example:
        >>> default_directory().parent.name
        'compiled'
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "estimator" / "compiled" / _processor()


def _processor() -> str:
    """A name for what the processor can do; homes are shared between machines."""
    described = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            described = next((line for line in file if line.startswith(("flags", "Features"))), described)
    except OSError:
        pass  # not Linux
    return f"{platform.machine()}-{hashlib.sha256(described.encode()).hexdigest()[:12]}"
