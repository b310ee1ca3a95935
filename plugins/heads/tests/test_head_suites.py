"""Every head fulfils the contract of heads, and every host transform that of host transforms."""

import numpy as np

import estimator_heads as eh
from estimator_core.testing import HeadSuite, HostTransformSuite, overrides
from estimator_heads.transforms import ClassNames, LabelIds, MultiHotLabels


class TestBinaryClassHead(HeadSuite):
    def make(self):
        return eh.BinaryClassHead(weight_column="w", thresholds=[0.25], name="click")

    def labels(self, rng, batch):
        return rng.integers(0, 2, (batch, 1))

    def features(self, rng, batch):
        return {"w": rng.uniform(0.5, 2.0, batch).astype(np.float32)}

    def with_weights(self, features, weights):
        return {**features, "w": weights}


class TestMultiClassHead(HeadSuite):
    def make(self):
        options = eh.LossOptions(label_smoothing=0.1, focal_gamma=2.0, class_weights=(1.0, 2.0, 0.5))
        return eh.MultiClassHead(3, loss_options=options)

    def labels(self, rng, batch):
        return rng.integers(0, 3, (batch, 1))


class TestMultiLabelHead(HeadSuite):
    def make(self):
        return eh.MultiLabelHead(3, thresholds=[0.5], classes_for_class_based_metrics=[1])

    def labels(self, rng, batch):
        return rng.integers(0, 2, (batch, 3))


class TestRegressionHead(HeadSuite):
    def make(self):
        return eh.RegressionHead(label_dimension=2, weight_column="w")

    def labels(self, rng, batch):
        return rng.normal(size=(batch, 2)).astype(np.float32)

    def features(self, rng, batch):
        return {"w": rng.uniform(0.5, 2.0, (batch, 2)).astype(np.float32)}

    def with_weights(self, features, weights):
        return {**features, "w": np.stack([weights, weights], axis=1)}


class TestLogisticRegressionHead(HeadSuite):
    def make(self):
        return eh.LogisticRegressionHead(loss_reduction="sum")

    def labels(self, rng, batch):
        return rng.uniform(0, 1, (batch, 1)).astype(np.float32)


class TestPoissonRegressionHead(HeadSuite):
    largest_logit = 80.0

    def make(self):
        return eh.PoissonRegressionHead()

    def labels(self, rng, batch):
        return rng.poisson(2.0, (batch, 1)).astype(np.float32)


class TestMultiHead(HeadSuite):
    def make(self):
        parts = [eh.BinaryClassHead(weight_column="w", name="click"), eh.RegressionHead(2, name="price")]
        return eh.MultiHead(parts, head_weights=[0.5, 2.0])

    def labels(self, rng, batch):
        return {"click": rng.integers(0, 2, (batch, 1)), "price": rng.normal(size=(batch, 2)).astype(np.float32)}

    def features(self, rng, batch):
        return {"w": rng.uniform(0.5, 2.0, batch).astype(np.float32)}

    def metrics_over_batches(self):
        return frozenset({"loss/click", "loss/price"})

    @overrides("they bear the names of the heads inside")
    def test_metric_names_bear_the_name(self):
        names = self._metrics(self._batch())
        assert names
        assert all(name.endswith(("/click", "/price")) for name in names)


class TestSequentialHeadWrapper(HeadSuite):
    def make(self):
        return eh.SequentialHeadWrapper(eh.MultiClassHead(3, weight_column="w"), "mask", "w")

    def labels(self, rng, batch):
        return rng.integers(0, 3, (batch, 4))

    def features(self, rng, batch):
        mask = np.arange(4) < rng.integers(1, 5, (batch, 1))
        return {"mask": mask, "w": rng.uniform(0.5, 2.0, (batch, 4)).astype(np.float32)}

    def with_weights(self, features, weights):
        return {**features, "w": np.repeat(weights[:, None], 4, axis=1)}

    def logits(self, rng, batch):
        return rng.normal(size=(batch, 4, 3)).astype(np.float32)

    @overrides("the predictions of a spec carry the mask, too")
    def test_spec_for_prediction(self):
        features, _, logits = self._batch()
        spec = self.make().create_estimator_spec(features, "infer", logits)
        assert set(spec.predictions) == {*self.make().predictions(logits), "mask"}
        np.testing.assert_array_equal(spec.predictions["mask"], features["mask"])
        assert spec.export_outputs


class TestTokenClassificationHead(HeadSuite):
    def make(self):
        names = ["O", "B-A", "I-A"]
        return eh.TokenClassificationHead(3, mask_column="mask", label_names=names, spans=True, name="ner")

    def labels(self, rng, batch):
        ids = rng.integers(0, 3, (batch, 4))
        ids[:, -1] = -100
        return ids

    def features(self, rng, batch):
        return {"mask": (np.arange(4) < rng.integers(2, 5, (batch, 1))).astype(np.int32)}

    def logits(self, rng, batch):
        return rng.normal(size=(batch, 4, 3)).astype(np.float32)


class TestRankingHead(HeadSuite):
    loss = "pairwise"

    def make(self):
        return eh.RankingHead(list_size=5, loss=self.loss, top_k=(2,), weight_column="w")

    def labels(self, rng, batch):
        grades = rng.integers(0, 4, (batch, 5))
        grades[:, 0] = 1
        grades[:, -1] = -1
        return grades

    def features(self, rng, batch):
        return {"w": rng.uniform(0.5, 2.0, batch).astype(np.float32)}

    def with_weights(self, features, weights):
        return {**features, "w": weights}


class TestListwiseRankingHead(TestRankingHead):
    loss = "listwise"


class TestRetrievalHead(HeadSuite):
    def make(self):
        return eh.RetrievalHead(3, temperature=0.5, candidate_id_column="id", top_k=(1, 2))

    def labels(self, rng, batch):
        return np.zeros((batch, 1), np.int32)

    def features(self, rng, batch):
        return {"id": rng.integers(0, 4, batch)}

    def metrics_over_batches(self):
        return frozenset({"average_loss", "in_batch_recall@1", "in_batch_recall@2", "in_batch_mrr"})


class TestClassNames(HostTransformSuite):
    def make(self):
        return ClassNames(["cat", "dog"], ["classes"])

    def batch(self):
        return {"classes": np.array([[0], [1], [1], [0]]), "x": np.arange(4.0)}


class TestLabelIds(HostTransformSuite):
    def make(self):
        return LabelIds(["cat", "dog", "eel"])

    def batch(self):
        return {"labels": np.array(["eel", "cat", "dog", "cat"])}


class TestMultiHotLabels(HostTransformSuite):
    def make(self):
        return MultiHotLabels(3, ["red", "round", "sweet"])

    def batch(self):
        rows = np.empty(4, object)
        rows[:] = [["red"], [], ["sweet", "red"], ["round"]]
        return {"labels": rows}
