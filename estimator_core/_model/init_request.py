"""What `ec.init_from_checkpoint` asks for, as the scope keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

#: Gives the arrays of a checkpoint, by path; the argument is what the user wrote (a file or directory).
CheckpointReader: TypeAlias = Callable[[str], Mapping[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class InitRequest:
    """First values to take from a checkpoint.

    Args:
        checkpoint: the file or directory, as the user wrote it.
        assignments: pairs of a name in the checkpoint and the path of the variable that takes its value.
        reader: reads it; None: it is a checkpoint of ours.
    """

    checkpoint: str
    assignments: tuple[tuple[str, str], ...]
    reader: CheckpointReader | None = None
