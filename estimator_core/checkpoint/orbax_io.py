"""The only module that touches orbax: arrays by item and path, to and from a directory.

Orbax is imported on the first save or read, so a run that starts without a checkpoint starts without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_arrays(directory: Path, items: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Writes arrays into a new directory; blocks until they are on the disk.

    Orbax refuses empty items and arrays without elements: leave both out.
    """
    from orbax.checkpoint import v1 as ocp

    context = ocp.Context()
    context.array.saving.use_compression = False  # weights shrink by 8 % and cost the training's cores seconds a gigabyte
    context.memory.deepcopy_host_arrays = False  # they are copies already
    with context:
        ocp.save_checkpointables(directory, {item: dict(named) for item, named in items.items()})


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
    with context:
        return ocp.load_checkpointables(directory, abstract)
