"""Reads exports in an environment without this framework. Needs only numpy and a reader of the format.

`check(directory, load)` calls `load(path_of_export) -> function(**inputs) -> outputs by name` for every model that
`write_exports.py` has written, and compares with what the estimator predicted.
"""

import importlib.util
from pathlib import Path

import numpy as np

ABSENT = ("estimator_core", "estimator_exporters", "flax", "optax", "orbax")
TOLERANCE = 1e-5


def refuse_installed(absent):
    """Fails if the environment contains a package that readers must not need. A check would then prove nothing."""
    found = [name for name in absent if importlib.util.find_spec(name) is not None]
    assert not found, f"this environment was to lack {found}"


def check(directory, load, absent=ABSENT):
    refuse_installed(absent)
    folders = sorted(path.parent for path in Path(directory).glob("*/path.txt"))
    assert [folder.name for folder in folders] == ["bert", "flax", "multi_head", "raw_variables"]
    for folder in folders:
        run = load(folder / (folder / "path.txt").read_text())
        greatest = 0.0
        for inputs in sorted(folder.glob("inputs_*.npz")):
            expected = np.load(folder / inputs.name.replace("inputs", "expected"))
            outputs = run(**np.load(inputs))
            assert set(outputs) == set(expected.files), (sorted(outputs), expected.files)
            for name in expected.files:
                value, wanted = np.asarray(outputs[name]), expected[name]
                assert value.shape == wanted.shape, (folder.name, name, value.shape, wanted.shape)
                assert value.dtype == wanted.dtype, (folder.name, name, value.dtype, wanted.dtype)
                greatest = max(greatest, float(np.abs(value.astype(np.float64) - wanted).max()))
        assert greatest <= TOLERANCE, f"{folder.name} differs by {greatest}"
        print(
            f"{folder.name}: batches of {len(list(folder.glob('inputs_*')))} sizes, greatest difference {greatest:.1e}"
        )
