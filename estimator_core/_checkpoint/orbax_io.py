"""Writes arrays to a directory and reads them, by item and path. Only this module uses orbax.

Orbax is imported on the first save or read, so a run that starts without a checkpoint does not wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

#: One orbax item for everything. Each separate one would cost ten more files and 10 ms more processor time.
_NAME = "state"

#: The number of arrays that are read together. Of each, tensorstore holds the bytes of the file beside the result.
_TOGETHER = 16

_SUPPRESSED = ("raised an exception", "ArrayMetadata persistence is disabled")


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

    wanted = {item: named for item, named in wanted.items() if named}
    if not wanted:
        return {}

    def of_each(make: Callable[[np.dtype], Any]) -> dict[str, dict[str, Any]]:
        return {item: {path: make(dtype) for path, dtype in named.items()} for item, named in wanted.items()}

    # Orbax uses the type and dtype of an abstract numpy array. The shape is read from the disk.
    abstract = of_each(partial(np.empty, ()))
    types = of_each(partial(ocp.RestoreArgs, np.ndarray))
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

    class InGroups(ocp.type_handlers.NumpyHandler):
        async def deserialize(self, infos: Sequence[Any], args: Sequence[Any]) -> Sequence[np.ndarray]:
            read: list[np.ndarray] = []
            for start in range(0, len(infos), _TOGETHER):
                group = slice(start, start + _TOGETHER)
                read += await super().deserialize(infos[group], args[group])
            return read

    # The caller has copied the arrays, and keeps the copy as it is until they are written. Orbax would copy them again.
    types = ocp.type_handlers.create_type_handler_registry((np.ndarray, InGroups(deepcopy_host_arrays=False)))
    with _without_chatter():
        # Compression would save 8 % of the disk, at the cost of seconds of the training's cores per gigabyte.
        handler = ocp.PyTreeCheckpointHandler(
            use_zarr3=True, use_compression=False, multiprocessing_options=alone, type_handler_registry=types
        )
        try:
            yield handler
        finally:
            handler.close()


@contextmanager
def _without_chatter() -> Generator[None]:
    """Suppresses the progress messages of orbax, which are 40 lines per checkpoint.

    Also suppresses its warning that it writes no metadata of device arrays, because a checkpoint has only host arrays.
    Also suppresses the tracebacks that it logs for every thread that an error passes, because the error is raised
    anyway. Other messages of a program to absl pass.
    """
    logger = logging.getLogger("absl")

    def wanted(record: logging.LogRecord) -> bool:
        told = record.levelno <= logging.INFO and "orbax" in record.pathname
        return not told and not any(text in record.getMessage() for text in _SUPPRESSED)

    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)
