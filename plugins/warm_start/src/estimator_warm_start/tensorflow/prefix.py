"""Finds the files of a checkpoint of TensorFlow from a path."""

from __future__ import annotations

import os
import re
from pathlib import Path

from estimator_core.errors import ArgumentError


def tensorflow_prefix(path: str | os.PathLike[str]) -> Path | None:
    """Returns the prefix of the files of the checkpoint that a path names, or None.

    Args:
        path: a prefix (`.../model.ckpt-50`), its index file, or a directory. In a directory, it is the newest
            checkpoint according to the file `checkpoint`, or the only one.

    Raises:
        ArgumentError: a directory has several checkpoints and no file `checkpoint`.
    """
    place = Path(os.path.expanduser(path))
    if place.suffix == ".index" and place.is_file():
        return place.with_suffix("")
    if place.parent.is_dir() and Path(f"{place}.index").is_file():
        return place
    if not place.is_dir():
        return None
    named = place / "checkpoint"
    if named.is_file():
        found = re.search(r'^model_checkpoint_path: "(.*)"', named.read_text(encoding="utf-8"), re.MULTILINE)
        if found and Path(f"{place / found.group(1)}.index").is_file():
            return place / found.group(1)
    indices = sorted(place.glob("*.index"))
    if len(indices) > 1:
        raise ArgumentError(f"{place} holds several checkpoints: {', '.join(p.stem for p in indices)}. Name one.")
    return indices[0].with_suffix("") if indices else None
