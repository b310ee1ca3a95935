"""Owning a model_dir, for one process or several."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator
from pathlib import Path

from estimator_core._checkpoint.lock import LOCK_FILE, ModelDirLock
from estimator_core._cluster.together import gather
from estimator_core.coordinator import Coordinator
from estimator_core.errors import ArgumentError


@contextlib.contextmanager
def own_together(model_dir: Path, processes: Coordinator) -> Generator[None]:
    """The chief holds the lock; the others see that it does, and so that all mean the same directory.

    Raises:
        ModelDirLockedError: another run is training there.
        ArgumentError: a process does not see the chief's directory.
    """
    if processes.count == 1:
        with ModelDirLock(model_dir):
            yield
        return
    with ModelDirLock(model_dir) if processes.index == 0 else contextlib.nullcontext():
        processes.barrier("locked", math.inf)
        token = (model_dir / LOCK_FILE).read_text() if (model_dir / LOCK_FILE).exists() else None
        seen = gather(processes, "model_dir", [str(model_dir.absolute()), token])
        strangers = [p for p, (_, lock) in enumerate(seen) if lock != seen[0][1]]
        if strangers:
            raise ArgumentError(
                f"Processes {strangers} do not see the model_dir of process 0 ({seen[0][0]}); theirs is "
                f"{[seen[p][0] for p in strangers]}. Give all the same model_dir, on a file system they share."
            )
        yield
        processes.barrier("done", math.inf)
