"""The only module that touches orbax: arrays by item and path, to and from a directory.

Orbax is imported on the first save or read, so a run that starts without a checkpoint starts without it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: One checkpointable for everything: each one of its own would cost orbax ten files and 10 ms of processor time more.
_NAME = "state"


def write_arrays(directory: Path, items: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Writes arrays into a new directory; blocks until they are on the disk.

    Orbax refuses arrays without elements: leave them out. Items without arrays are left out here.
    """
    from orbax.checkpoint import v1 as ocp

    context = ocp.Context()
    context.array.saving.use_compression = False  # saves 8 % of the disk for seconds a gigabyte of the training's cores
    context.memory.deepcopy_host_arrays = False  # they are copies already
    # Otherwise a read in another thread takes the sign that the directories are there, and the write fails or hangs.
    context.asynchronous.create_directories_asynchronously = False
    with context, _errors_told_once():
        ocp.save_checkpointables(
            str(directory.absolute()), {_NAME: {item: dict(named) for item, named in items.items() if named}}
        )


def read_arrays(directory: Path, wanted: Mapping[str, Mapping[str, np.dtype[Any]]]) -> dict[str, dict[str, np.ndarray]]:
    """Reads the named arrays of each item.

    Args:
        directory: what `write_arrays` wrote.
        wanted: item -> path -> stored dtype (orbax would cast to any other without a word); no arrays without elements.
    """
    from orbax.checkpoint import v1 as ocp

    # Of an abstract numpy array orbax takes the type and dtype; the shape comes from the disk.
    abstract = {
        item: {path: np.empty((), dtype) for path, dtype in named.items()} for item, named in wanted.items() if named
    }
    if not abstract:
        return {}
    context = ocp.Context()
    context.pytree.loading.partial_load = True
    with context, _errors_told_once():
        return ocp.load_checkpointables(str(directory.absolute()), {_NAME: abstract})[_NAME]


@contextmanager
def _errors_told_once() -> Generator[None]:
    """Keeps orbax from logging the traceback of every thread that an error passes: the error is raised anyway."""
    logger = logging.getLogger("absl")

    def not_raised_anyway(record: logging.LogRecord) -> bool:
        return "raised an exception" not in record.getMessage()

    logger.addFilter(not_raised_anyway)
    try:
        yield
    finally:
        logger.removeFilter(not_raised_anyway)
