"""Shared functions of the journey checks: the rows that a client sends, and the comparison of the answers."""

import json
from pathlib import Path

import compare
import numpy as np

MODELS = 8


def folders(directory):
    """The folder of each model."""
    found = sorted(path.parent for path in Path(directory).glob("*/paths.json"))
    assert len(found) == MODELS, found
    return found


def written(folder, what):
    """The content that `write_journeys.py` has written for a model."""
    return json.loads((folder / f"{what}.json").read_text())


def texts(value):
    """Text as str, whatever type the reader returns."""
    return np.vectorize(lambda item: item.decode() if isinstance(item, bytes) else str(item))(value).tolist()


def agree(found, folder, kind):
    """Refuses outputs that differ from the predictions of the estimator.

    Text must be equal, numbers within the tolerance.
    """
    expected, where, greatest = written(folder, "expected"), (folder.name, kind), 0.0
    assert set(found) == set(expected), (where, sorted(found), sorted(expected))
    for name, wanted in expected.items():
        value = np.asarray(found[name])
        assert value.shape == np.shape(wanted), (where, name, value.shape, np.shape(wanted))
        if value.dtype.kind in "OSU":
            assert texts(value) == texts(np.asarray(wanted)), (where, name)
            continue
        greatest = max(greatest, float(np.abs(value - np.asarray(wanted)).max()))
    assert greatest <= compare.TOLERANCE, f"{where} differs by {greatest}"
    classes = ", classes equal as strings" if "classes" in found else ""
    print(f"{folder.name}, {kind}: {len(wanted)} rows, greatest difference {greatest:.1e}{classes}", flush=True)
