"""The suite for host transforms."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from estimator_core.inputs import HostTransform, apply_transforms, load_transforms, save_transforms
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite

Arrays = Mapping[str, np.ndarray[Any, Any]]
#: A feature that transforms do not know.
_OTHER = "a_feature_of_the_suite"


class HostTransformSuite(Suite):
    """Proves that a transform is data, works by row, and is the same in every process. Subclass it and add a batch.

    Example:
        >>> class TestLower(HostTransformSuite):
        ...     def make(self):
        ...         return Lower("text")
        ...
        ...     def batch(self):
        ...         return {"text": np.array(["A", "b", "C", "dD"])}
    """

    #: False for a transform that removes features which it was not configured to read.
    keeps_others: ClassVar[bool] = True

    def make(self) -> HostTransform:
        """Returns the transform. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def batch(self) -> Arrays:
        """Returns a batch of at least four different examples: arrays by name, first axis the example."""
        raise NotImplementedError(f"{type(self).__name__} must define batch(self)")

    def test_is_a_host_transform(self) -> None:
        """It has a valid component name, a version of at least 1, and the methods of HostTransform."""
        transform = self.make()
        assert isinstance(transform, HostTransform), f"{transform!r} lacks an attribute of HostTransform"
        assert re.fullmatch(r"[a-z][a-z0-9_]*", transform.name), f"name {transform.name!r}: lower-case words and _"
        assert isinstance(transform.version, int)
        assert transform.version >= 1
        of_class = getattr(type(transform), "version", None)
        assert of_class == transform.version, (
            f"the version of the class is {of_class!r}; it is read before an object exists"
        )

    def test_config_is_json(self) -> None:
        """Its configuration is JSON, and its files exist."""
        config = dict(self.make().config())
        assert json.loads(json.dumps(config, allow_nan=False)) == config, f"JSON does not keep the config {config!r}"
        for argument, path in self.make().files.items():
            assert Path(path).is_file(), f"file {argument!r}: {path} does not exist"

    def test_is_made_again_from_its_data(self, tmp_path: Path) -> None:
        """A transform that was written and read back returns the same, and needs only the files that were written."""
        transform = self.make()
        expected = self._apply(transform, self.batch())
        save_transforms([transform], tmp_path / "saved")
        (again,) = load_transforms(tmp_path / "saved", lambda name: {transform.name: type(transform)}[name])
        for argument, path in again.files.items():
            assert Path(path).is_relative_to(tmp_path / "saved"), f"file {argument!r} is still {path}"
        assert_same_arrays(self._apply(again, self.batch()), expected, "made again from its data, it returns")

    def test_gives_arrays_of_the_batch(self) -> None:
        """It returns a dict of numpy arrays with the examples on the first axis."""
        batch = self.batch()
        size = len(next(iter(batch.values())))
        assert size >= 4, "batch() must have at least four examples"
        result = self._apply(self.make(), batch)
        assert result, "it returns no arrays"
        for name, array in result.items():
            assert isinstance(name, str)
            assert array.shape[:1] == (size,), f"{name!r} has shape {array.shape}; the batch has {size} examples"

    def test_changes_nothing_it_is_given(self) -> None:
        """It does not change the batch or its arrays."""
        batch = dict(self.batch())
        before = {name: array.copy() for name, array in batch.items()}
        self._apply(self.make(), batch)
        assert list(batch) == list(before), "it changed the keys of the batch it was given"
        assert_same_arrays(batch, before, "it changed the arrays it was given:")

    def test_keeps_other_features(self) -> None:
        """A feature that it was not configured to read is returned unchanged."""
        batch = dict(self.batch())
        other = np.array([f"row {row}" for row in range(len(next(iter(batch.values()))))])
        result = self._apply(self.make(), {**batch, _OTHER: other})
        if self.keeps_others:
            assert _OTHER in result, f"it leaves out a feature that it does not read: {sorted(result)}"
            np.testing.assert_array_equal(result[_OTHER], other)

    def test_results_stay_as_they_were(self) -> None:
        """The result of one batch does not change with the next one."""
        transform, batch = self.make(), self.batch()
        result = self._apply(transform, batch)
        before = {name: array.copy() for name, array in result.items()}
        self._apply(transform, {name: array[::-1].copy() for name, array in batch.items()})
        assert_same_arrays(result, before, "a later batch changed the result of an earlier one:")

    def test_rows_are_independent(self) -> None:
        """A row depends only on its own example. A batch of one has the same row, so serving equals training."""
        transform, batch = self.make(), self.batch()
        whole = self._apply(transform, batch)
        for row in range(len(next(iter(batch.values())))):
            alone = self._apply(transform, {name: array[row : row + 1] for name, array in batch.items()})
            expected = {name: array[row : row + 1] for name, array in whole.items()}
            assert_same_arrays(alone, expected, f"example {row} alone has a different row than in the batch:")

    def test_is_deterministic(self) -> None:
        """It returns the same for the same batch: when repeated, from another object, and in another thread."""
        transform, batch = self.make(), self.batch()
        expected = self._apply(transform, batch)
        assert_same_arrays(self._apply(transform, batch), expected, "applied again, it returns")
        assert_same_arrays(self._apply(self.make(), batch), expected, "another object from `make` returns")
        results: list[Arrays] = []
        thread = threading.Thread(target=lambda: results.append(self._apply(transform, batch)))
        thread.start()
        thread.join()
        assert results, "it cannot be used in another thread, where inputs run"
        assert_same_arrays(results[0], expected, "in another thread it returns")

    def test_another_hash_seed(self, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the process that serves, it returns the same."""
        result = self._apply(self.make(), self.batch())
        same_under_another_seed(request, [[name, array.dtype.kind, array] for name, array in sorted(result.items())])

    def test_leaves_nothing_behind(self) -> None:
        """After a batch no thread runs, no file is open, and the state of the process is as before."""
        batch = self.batch()
        kept = [self.make()]
        with loading():
            self._apply(kept[0], batch)
        with leaving_nothing("after a batch, the transform"):
            kept.append(self.make())
            self._apply(kept[1], batch)

    def _apply(self, transform: HostTransform, batch: Arrays) -> Arrays:
        return apply_transforms([transform], batch)


def assert_same_arrays(actual: Arrays, expected: Arrays, message: str) -> None:
    """Compares arrays by name: dtype kind, shape and values."""
    assert set(actual) == set(expected), f"{message} keys {sorted(actual)}, expected {sorted(expected)}"
    for name, array in expected.items():
        assert actual[name].dtype.kind == array.dtype.kind, f"{message} {name!r} has dtype {actual[name].dtype}"
        np.testing.assert_array_equal(actual[name], array, f"{message} {name!r}")
