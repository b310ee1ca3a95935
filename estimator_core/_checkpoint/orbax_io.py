"""Writes arrays to a directory and reads them, by item and path. Only this module uses orbax.

Orbax is imported on the first save or read, so a run that starts without a checkpoint does not wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: One orbax item for everything. Each separate one would cost ten more files and 10 ms more processor time.
_NAME = "state"


def write_arrays(directory: Path, items: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Writes arrays into a new directory, and returns when they are on the disk.

    Orbax refuses arrays without elements, so do not pass them. Items without arrays are skipped.
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
        directory: the directory that `write_arrays` wrote, or earlier versions with other interfaces of orbax.
        wanted: the stored dtypes by item and path, without arrays that have no elements. Orbax would silently cast to
            another dtype.
    """
    import orbax.checkpoint as ocp

    # Orbax uses the type and dtype of an abstract numpy array. The shape is read from the disk.
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
    """Yields the handler that writes and reads the files of one item.

    It does not communicate with other processes, because they are busy with steps.

    The higher interfaces of orbax communicate with every process. They create a directory, rename it and write
    metadata, which a checkpoint already has. That takes a third of the processor time of a small save.
    """
    import jax

    own = jax.process_index()
    alone = ocp.options.MultiprocessingOptions(
        primary_host=own, active_processes={own}, barrier_sync_key_prefix=f"process-{own}"
    )
    with _without_chatter():
        # Compression would save 8 % of the disk, at the cost of seconds of the training's cores per gigabyte.
        handler = ocp.PyTreeCheckpointHandler(use_zarr3=True, use_compression=False, multiprocessing_options=alone)
        try:
            yield handler
        finally:
            handler.close()


@contextmanager
def _without_chatter() -> Generator[None]:
    """Suppresses the progress messages of orbax, which are 40 lines per checkpoint.

    Also suppresses the tracebacks that it logs for every thread that an error passes, because the error is raised
    anyway. Other messages of a program to absl pass.
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
