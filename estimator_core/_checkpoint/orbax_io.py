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
    if is_one_of_several():
        _write_by_itself(directory, items)
        return
    from orbax.checkpoint import v1 as ocp

    context = ocp.Context()
    context.array.saving.use_compression = False  # saves 8 % of the disk for seconds a gigabyte of the training's cores
    context.memory.deepcopy_host_arrays = False  # they are copies already
    # Otherwise a read in another thread takes the sign that the directories are there, and the write fails or hangs.
    context.asynchronous.create_directories_asynchronously = False
    with context, _without_chatter():
        ocp.save_checkpointables(
            str(directory.absolute()), {_NAME: {item: dict(named) for item, named in items.items() if named}}
        )


def read_arrays(directory: Path, wanted: Mapping[str, Mapping[str, np.dtype]]) -> dict[str, dict[str, np.ndarray]]:
    """Reads the named arrays of each item.

    Args:
        directory: what `write_arrays` wrote.
        wanted: item -> path -> stored dtype (orbax would cast to any other without a word); no arrays without elements.
    """
    if is_one_of_several():
        return _read_by_itself(directory, wanted)
    from orbax.checkpoint import v1 as ocp

    # Of an abstract numpy array orbax takes the type and dtype; the shape comes from the disk.
    abstract = {
        item: {path: np.empty((), dtype) for path, dtype in named.items()} for item, named in wanted.items() if named
    }
    if not abstract:
        return {}
    context = ocp.Context()
    context.pytree.loading.partial_load = True
    with context, _without_chatter():
        return ocp.load_checkpointables(str(directory.absolute()), {_NAME: abstract})[_NAME]


def is_one_of_several() -> bool:
    """Whether orbax would take this process for one of several that save together."""
    import jax

    return jax.distributed.is_initialized()


def _write_by_itself(directory: Path, items: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """The same files without a word to the other processes: in process 0, the only one that orbax lets write.

    The v1 interface compares the paths of all processes on their devices, while these are busy with steps.
    """
    import orbax.checkpoint as ocp

    alone = _alone(ocp)
    handler = _handler(ocp, alone)
    composite = ocp.CompositeCheckpointHandler(
        **{_NAME: handler}, composite_options=ocp.CompositeOptions(multiprocessing_options=alone)
    )
    tree = {item: dict(named) for item, named in items.items() if named}
    with _without_chatter(), ocp.Checkpointer(composite, multiprocessing_options=alone) as checkpointer:
        checkpointer.save(directory.absolute(), args=ocp.args.Composite(**{_NAME: ocp.args.PyTreeSave(tree)}))


def _read_by_itself(directory: Path, wanted: Mapping[str, Mapping[str, np.dtype]]) -> dict[str, dict[str, np.ndarray]]:
    import orbax.checkpoint as ocp

    tree = {
        item: {path: np.empty((), dtype) for path, dtype in named.items()} for item, named in wanted.items() if named
    }
    if not tree:
        return {}
    types = {
        item: {path: ocp.RestoreArgs(restore_type=np.ndarray, dtype=dtype) for path, dtype in named.items()}
        for item, named in wanted.items()
        if named
    }
    alone = _alone(ocp)
    with _without_chatter(), ocp.Checkpointer(_handler(ocp, alone), multiprocessing_options=alone) as checkpointer:
        return checkpointer.restore(
            directory.absolute() / _NAME,
            args=ocp.args.PyTreeRestore(item=tree, restore_args=types, partial_restore=True),
        )


def _handler(ocp: Any, alone: Any) -> Any:
    return ocp.PyTreeCheckpointHandler(use_ocdbt=True, use_zarr3=True, multiprocessing_options=alone)


def _alone(ocp: Any) -> Any:
    import jax

    own = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        primary_host=own, active_processes={own}, barrier_sync_key_prefix=f"process-{own}"
    )


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
