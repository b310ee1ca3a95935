"""The suite for models (canned estimators)."""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
import pytest

from estimator_core.config import RunConfig
from estimator_core.estimator import Estimator
from estimator_core.inputs import numpy_input_fn
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite

SEED = 17


class ModelSuite(Suite):
    """Proves that a model learns, repeats itself, resumes and predicts. Subclass it, implement `make`, add examples.

    Example:
        >>> class TestMyModel(ModelSuite):
        ...     def make(self, config):
        ...         return MyClassifier(n_classes=2, config=config)
        ...
        ...     def examples(self, rng):
        ...         x = rng.normal(size=(40, 3)).astype(np.float32)
        ...         return {"x": x}, (x.sum(axis=1) > 0).astype(np.int32)
    """

    #: The number of steps within which the loss on the examples must fall to three quarters.
    steps: ClassVar[int] = 60
    #: False for a model that predicts the same for every example, such as a baseline.
    reads_features: ClassVar[bool] = True

    def make(self, config: RunConfig) -> Estimator:
        """Returns the model with this configuration."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self, config)")

    def examples(self, rng: np.random.Generator) -> tuple[Mapping[str, Any], Any]:
        """Returns features by name and labels of at least 24 examples that the model can learn."""
        raise NotImplementedError(f"{type(self).__name__} must define examples(self, rng)")

    def test_is_an_estimator(self, tmp_path: Path) -> None:
        """It is an Estimator that writes where its configuration says."""
        model = self._make(tmp_path)
        assert isinstance(model, Estimator)
        assert model.model_dir == str(tmp_path)
        assert model.config.tf_random_seed == SEED, "it does not use the configuration it is given"

    def test_learns(self, tmp_path: Path) -> None:
        """Its loss on the examples falls when it is trained on them."""
        model = self._make(tmp_path).train(self._input(), steps=1)
        before = model.evaluate(self._input(epochs=1))["loss"]
        after = model.train(self._input(), steps=self.steps).evaluate(self._input(epochs=1))["loss"]
        assert after < 0.75 * before, f"the loss was {before} and is {after} after {self.steps} steps"

    def test_metrics_are_finite(self, tmp_path: Path) -> None:
        """Every metric of an evaluation is finite, and the same when evaluated again."""
        model = self._make(tmp_path).train(self._input(), steps=2)
        metrics = model.evaluate(self._input(epochs=1))
        for name, value in metrics.items():
            assert np.all(np.isfinite(value)), f"{name} is {value}"
        assert_same_trees(model.evaluate(self._input(epochs=1)), metrics, "evaluated again")

    def test_metrics_count_every_example_once(self, tmp_path: Path) -> None:
        """Metrics other than the loss do not depend on how the examples are cut into batches, also of unequal sizes."""
        model = self._make(tmp_path).train(self._input(), steps=2)
        ragged = next(size for size in (5, 7, 9, 11) if self._count() % size)
        one, other = (model.evaluate(self._input(epochs=1, batch_size=size)) for size in (ragged, 8))
        for name in one.keys() - {"loss"}:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-5, err_msg=name)

    def test_padding_does_not_count(self, tmp_path: Path) -> None:
        """Rows that fill up a batch (`ragged="pad"`) change neither the loss nor a metric."""
        model = self._make(tmp_path).train(self._input(), steps=1)
        features, labels = jax.tree.map(lambda leaf: leaf[:3], self._examples())
        padded, exact = (
            model.evaluate(numpy_input_fn(features, labels, batch_size=8, num_epochs=1, shuffle=False, ragged=ragged))
            for ragged in ("pad", "exact")
        )
        for name, value in exact.items():
            np.testing.assert_allclose(padded[name], value, rtol=1e-4, atol=1e-5, err_msg=name)

    def test_predicts_each_example(self, tmp_path: Path) -> None:
        """It predicts every example once, in order, without labels, whatever the batch size, and by its features."""
        model = self._make(tmp_path).train(self._input(), steps=2)
        by_five, by_eight = (list(model.predict(self._features(batch_size=size))) for size in (5, 8))
        assert len(by_five) == len(by_eight) == self._count()
        for one, other in zip(by_five, by_eight, strict=True):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), one, other)
        if self.reads_features:
            leaves = [[np.asarray(leaf) for leaf in jax.tree.leaves(one)] for one in by_eight]
            alike = all(all(map(np.array_equal, one, leaves[0])) for one in leaves)
            assert not alike, "its predictions of all examples are the same: they do not depend on the features"

    def test_repeats_itself(self, tmp_path: Path) -> None:
        """The same seed leads to the same weights, bit for bit."""
        first, second = (self._make(tmp_path / name).train(self._input(), steps=3) for name in ("first", "second"))
        assert_same_trees(second.variables, first.variables, "trained again")

    def test_resumes(self, tmp_path: Path) -> None:
        """Six steps at once lead to the same weights as three, and three more by another object, bit for bit."""
        straight = self._make(tmp_path / "straight").train(self._input(), steps=6)
        self._make(tmp_path / "resumed").train(self._input(), steps=3)
        resumed = self._make(tmp_path / "resumed").train(self._input(), steps=3)
        assert_same_trees(resumed.variables, straight.variables, "resumed after step 3")

    def test_a_checkpoint_is_the_model(self, tmp_path: Path) -> None:
        """Another object on the same directory predicts the same."""
        model = self._make(tmp_path).train(self._input(), steps=3)
        expected = list(model.predict(self._features()))
        actual = list(self._make(tmp_path).predict(self._features()))
        assert_same_trees(actual, expected, "read from the checkpoint")

    def test_evaluation_and_prediction_change_nothing(self, tmp_path: Path) -> None:
        """Evaluating and predicting leave every variable as it is."""
        model = self._make(tmp_path).train(self._input(), steps=2)
        before = copy.deepcopy(model.variables)
        model.evaluate(self._input(epochs=1))
        list(model.predict(self._features()))
        assert_same_trees(model.variables, before, "after evaluating and predicting")

    def test_is_traced_once_a_mode(self, tmp_path: Path) -> None:
        """Repeated training, evaluation and prediction trace nothing again."""
        model = self._make(tmp_path)

        def all_modes() -> None:
            model.train(self._input(), steps=2)
            model.evaluate(self._input(batch_size=8), steps=2)
            list(itertools.islice(model.predict(self._features(batch_size=8)), 3))

        all_modes()
        traced = dict(model.trace_counts)
        all_modes()
        assert dict(model.trace_counts) == traced, f"traces were {traced} and are {model.trace_counts}"

    def test_another_hash_seed(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, the same seed leads to the same weights."""
        model = self._make(tmp_path).train(self._input(), steps=1)
        leaves = jax.tree_util.tree_leaves_with_path(model.variables)
        same_under_another_seed(request, sorted((jax.tree_util.keystr(path), _digest(leaf)) for path, leaf in leaves))

    def test_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """After a training, an evaluation and a prediction, no thread runs, no file is open, and the state of the
        process is as before.
        """

        def use(name: str) -> None:
            model = self._make(tmp_path / name).train(self._input(), steps=1)
            model.evaluate(self._input(epochs=1))
            list(model.predict(self._features()))

        with loading():
            use("first")
        with leaving_nothing("after its calls, the model"):
            use("second")

    def _make(self, model_dir: Path) -> Estimator:
        return self.make(RunConfig(model_dir=str(model_dir), tf_random_seed=SEED))

    def _examples(self) -> tuple[dict[str, Any], Any]:
        features, labels = self.examples(np.random.default_rng(3))
        return dict(features), labels

    def _count(self) -> int:
        return len(next(iter(self._examples()[0].values())))

    def _input(self, *, epochs: int | None = None, batch_size: int = 8) -> Callable[..., Any]:
        features, labels = self._examples()
        shuffle = epochs is None
        return numpy_input_fn(features, labels, batch_size=batch_size, num_epochs=epochs, shuffle=shuffle, seed=5)

    def _features(self, *, batch_size: int = 8) -> Callable[..., Any]:
        return numpy_input_fn(self._examples()[0], batch_size=batch_size, shuffle=False)


def _digest(leaf: Any) -> str:
    return hashlib.sha256(np.asarray(leaf).tobytes()).hexdigest()


def assert_same_trees(actual: Any, expected: Any, message: str) -> None:
    """Compares two trees bit for bit."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected), f"{message}: another structure"
    for path, value in jax.tree_util.tree_leaves_with_path(expected):
        found = actual
        for key in path:
            found = found[key.key if hasattr(key, "key") else key.idx]
        np.testing.assert_array_equal(found, value, f"{message}: {jax.tree_util.keystr(path)}")
