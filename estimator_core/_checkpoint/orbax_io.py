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

#: One item for everything: each one of its own would cost orbax ten files and 10 ms of processor time more.
_NAME = "state"


def write_arrays(directory: Path, items: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Writes arrays into a new directory; blocks until they are on the disk.

    Orbax refuses arrays without elements: leave them out. Items without arrays are left out here.
    """
    import orbax.checkpoint as ocp

    place = directory.absolute() / _NAME
    place.mkdir(parents=True)
    with _handler(ocp) as handler:
        handler.save(place, args=ocp.args.PyTreeSave({item: dict(named) for item, named in items.items() if named}))
        handler.finalize(place)


def read_arrays(directory: Path, wanted: Mapping[str, Mapping[str, np.dtype]]) -> dict[str, dict[str, np.ndarray]]:
    """Reads the named arrays of each item.

    Args:
        directory: what `write_arrays` wrote, or earlier versions by other interfaces of orbax.
        wanted: item -> path -> stored dtype (orbax would cast to any other without a word); no arrays without elements.
    """
    import orbax.checkpoint as ocp

    # Of an abstract numpy array orbax takes the type and dtype; the shape comes from the disk.
    abstract = {
        item: {path: np.empty((), dtype) for path, dtype in named.items()} for item, named in wanted.items() if named
    }
    if not abstract:
        return {}
    types = {
        item: {path: ocp.RestoreArgs(restore_type=np.ndarray, dtype=dtype) for path, dtype in named.items()}
        for item, named in wanted.items()
        if named
    }
    arguments = ocp.args.PyTreeRestore(item=abstract, restore_args=types, partial_restore=True)
    with _handler(ocp) as handler:
        return handler.restore(directory.absolute() / _NAME, args=arguments)


@contextmanager
def _handler(ocp: Any) -> Generator[Any]:
    """What writes and reads the files of one item, without a word to other processes: these are busy with steps.

    The interfaces of orbax around it ask every process. They make a directory, rename it and write metadata, which a
    checkpoint has already. That is a third of the processor time of a small save.
    """
    import jax

    own = jax.process_index()
    alone = ocp.options.MultiprocessingOptions(
        primary_host=own, active_processes={own}, barrier_sync_key_prefix=f"process-{own}"
    )
    with _without_chatter():
        # Compression saves 8 % of the disk for seconds a gigabyte of the training's cores.
        handler = ocp.PyTreeCheckpointHandler(use_zarr3=True, use_compression=False, multiprocessing_options=alone)
        try:
            yield handler
        finally:
            handler.close()


@contextmanager
def _without_chatter() -> Generator[None]:
    """Keeps orbax from telling how it works, 40 lines a checkpoint, and from logging the traceback of every thread that
    an error passes: the error is raised anyway. What a program logs by absl itself passes.
    """
    logger = logging.getLogger("absl")

    def wanted(record: logging.LogRecord) -> bool:
        told = record.levelno <= logging.INFO and "orbax" in record.pathname
        return not told and "raised an exception" not in record.getMessage()

    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)
