"""A small state with every kind of leaf that a checkpoint can meet."""

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from estimator_core._checkpoint import CheckpointItems, CheckpointStore


def _small_items(step: int, **changes: object) -> CheckpointItems:
    """Returns contents that depend on the step, so that a mix of two checkpoints is detected."""
    random = np.random.default_rng(step)
    values: dict[str, object] = {
        "clock": np.array([step, 0, 7, 0], np.uint32),
        "variables": {
            "dense/kernel": random.standard_normal((40, 30), dtype=np.float32),
            "dense/bias": random.standard_normal(30).astype(ml_dtypes.bfloat16),
            "empty": np.zeros((0, 3), np.float32),
        },
        "model_state": {"norm/count": np.array(step, np.int64), "norm/seen": np.array([True, False])},
        "opt_state": {
            "0/mu/dense/kernel": random.standard_normal((40, 30), dtype=np.float32),
            "0/count": np.uint32(step),
        },
        "input": {"fingerprint": "f", "examples": 32 * step},
        "hooks": {"Best": {"loss": 0.5, "history": np.arange(step)}, "Stateless": {}},
        "timers": {"save": {"base": step}},
        "manifest": {"plugins": {"heads": "1.0"}},
        **changes,
    }
    return CheckpointItems(**values)  # type: ignore[arg-type]


def _assert_same(found: CheckpointItems, expected: CheckpointItems) -> None:
    """Asserts that two contents have the same keys and the same bits."""
    np.testing.assert_array_equal(found.clock, expected.clock)
    for item in ("variables", "model_state", "opt_state"):
        left, right = getattr(found, item), getattr(expected, item)
        assert left.keys() == right.keys()
        for path in left:
            value = np.asarray(right[path])
            assert (left[path].dtype, left[path].shape) == (value.dtype, value.shape), path
            assert left[path].tobytes() == value.tobytes(), path
    assert found.input == expected.input
    assert found.hooks["Best"]["loss"] == expected.hooks["Best"]["loss"]
    np.testing.assert_array_equal(found.hooks["Best"]["history"], expected.hooks["Best"]["history"])
    assert found.hooks.keys() == expected.hooks.keys()
    assert (found.timers, found.manifest) == (expected.timers, expected.manifest)


@pytest.fixture
def small_items() -> Callable[..., CheckpointItems]:
    """Returns `small_items(step, **changes)`, which makes the contents of a checkpoint."""
    return _small_items


@pytest.fixture
def assert_same() -> Callable[[CheckpointItems, CheckpointItems], None]:
    """Returns `assert_same(found, expected)`."""
    return _assert_same


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A model_dir with checkpoints of steps 1 and 2."""
    with CheckpointStore(tmp_path) as store:
        for step in (1, 2):
            store.save(step, _small_items(step))
    return tmp_path
