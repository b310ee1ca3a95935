"""Tests of models without recordings: they learn, resume bitwise, and keep the known part of a changed vocabulary."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_heads import BinaryClassHead, RetrievalHead
from plugins.canned_tabular.tests.given_weights import QUIET

POINTS = np.array([[0, 0], [0, 1], [10, 10], [10, 11]], np.float32)


def quiet(folder, **more):
    return ec.RunConfig(model_dir=str(folder), tf_random_seed=1, **{**QUIET, **more})


def test_55_k_means(tmp_path):
    kmeans = tab.KMeans(2, initial_clusters=[[0, 0], [10, 10]], use_mini_batch=False, config=quiet(tmp_path))
    kmeans.train(lambda: [{"x": POINTS}], steps=1)
    assert kmeans.cluster_centers().tolist() == [[0.0, 0.5], [10.0, 10.5]]
    assert kmeans.score(lambda: [{"x": POINTS}]) == pytest.approx(1.0)
    assert list(kmeans.predict_cluster_index(lambda: [{"x": POINTS}])) == [0, 0, 1, 1]
    assert next(kmeans.transform(lambda: [{"x": POINTS}])).tolist() == pytest.approx([0.5, 14.5])


def test_in_a_mini_batch_the_first_centre_counts_as_a_point(tmp_path):
    kmeans = tab.KMeans(2, initial_clusters=[[0, 0], [10, 10]], config=quiet(tmp_path))
    kmeans.train(lambda: [{"x": POINTS}], steps=1)
    assert np.asarray(kmeans.cluster_centers()) == pytest.approx(np.array([[0.0, 1 / 3], [10.0, 10 + 1 / 3]]))


@pytest.mark.parametrize("mini", [True, False])
def test_k_means_ignores_points_that_only_fill_up_a_batch(tmp_path, mini):
    points = np.concatenate([POINTS, [[10, 13]]]).astype(np.float32)

    def input_fn(ragged):
        return ec.inputs.numpy_input_fn({"x": points}, batch_size=4, shuffle=False, num_epochs=1, ragged=ragged)

    centres, scores = [], []
    for ragged in ("exact", "pad"):
        options = {"initial_clusters": [[0, 0], [10, 10]], "use_mini_batch": mini}
        kmeans = tab.KMeans(2, config=quiet(tmp_path / ragged), **options).train(input_fn(ragged))
        centres.append(kmeans.cluster_centers().tolist())
        found = kmeans.evaluate(input_fn(ragged))
        scores.append((found["loss"], found["score"]))
    assert centres[0] == centres[1]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    "initial",
    ["random", "kmeans_plus_plus", lambda points, count: points[:count], lambda points, count: points[count:]],
    ids=["random", "plus_plus", "first", "last"],
)
def test_the_first_clusters_are_not_points_that_only_fill_up_a_batch(tmp_path, initial):
    real = np.array([1, 0, 1, 0, 0, 1], np.float32)
    points = np.where(real[:, None] > 0, np.arange(12).reshape(6, 2), 500).astype(np.float32)
    for seed in range(4):
        kmeans = tab.KMeans(
            3,
            initial_clusters=initial,
            feature_columns=[tab.numeric_column("x", 2)],
            config=quiet(tmp_path / str(seed)),
            seed=seed,
            use_mini_batch=False,
        )
        kmeans.train(lambda: [{"x": points, "is_real_example": real}])
        assert sorted(kmeans.cluster_centers().tolist()) == points[real > 0].tolist()


@pytest.mark.parametrize("initial", ["random", "kmeans_plus_plus"])
@pytest.mark.parametrize("marked", [True, False])
def test_a_first_batch_that_is_filled_up_to_the_number_of_clusters_is_refused(tmp_path, initial, marked):
    def kmeans(clusters):
        config = quiet(tmp_path / str(clusters))
        return tab.KMeans(clusters, initial_clusters=initial, config=config, use_mini_batch=False)

    def few(count):
        points = np.arange(12, dtype=np.float32).reshape(6, 2)
        if marked:
            return lambda: [{"x": points, "is_real_example": (np.arange(6) < count).astype(np.float32)}]
        return ec.inputs.from_iterable(lambda: [{"x": points[:count]}], ragged="pad", batch_size=6)

    with pytest.raises(ArgumentError, match=r"first batch has 3 points, .* fewer than num_clusters=4"):
        kmeans(4).train(few(3))
    kmeans(3).train(few(3))
    assert len(np.unique(kmeans(3).cluster_centers(), axis=0)) == 3
    kmeans(3).train(few(2))  # its clusters are chosen


def test_a_model_of_points_in_a_variable_scope_refuses_such_a_batch_and_accepts_later_ones(tmp_path):
    points = np.arange(12, dtype=np.float32).reshape(6, 2)
    kmeans = tab.kmeans_model_fn(tab.KMeansOptions(num_clusters=3))

    def model_fn(features, labels, mode):
        with ec.variable_scope("outer"):
            return kmeans(features, labels, mode)

    def few(count):
        return lambda: [{"x": points, "is_real_example": (np.arange(6) < count).astype(np.float32)}]

    estimator = ec.Estimator(model_fn, config=quiet(tmp_path))
    with pytest.raises(ArgumentError, match=r"first batch has 2 points, .* fewer than num_clusters=3"):
        estimator.train(few(2))
    estimator.train(few(3))
    estimator.train(few(2))
    assert "outer/clusters_chosen" in estimator.get_variable_names()


def test_a_later_batch_may_have_fewer_points_than_clusters(tmp_path):
    """The short last batch of an epoch, also if a process begins with it."""
    points = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    batches = [{"x": points[:8]}, {"x": points[8:16]}, {"x": points[16:18]}, {"x": points[18:]}]

    def kmeans(folder):
        return tab.KMeans(4, config=quiet(tmp_path / folder), seed=1)

    kmeans("whole").train(lambda: batches)
    kmeans("parts").train(lambda: batches, max_steps=2)
    centres, counts = kmeans("parts").cluster_centers(), kmeans("parts").get_variable_value("cluster_counts")
    kmeans("parts").train(lambda: batches, max_steps=4)
    for x in (batch["x"] for batch in batches[2:]):
        own = np.eye(4)[np.argmin(((x[:, None] - centres) ** 2).sum(-1), axis=1)]
        counts = counts + own.sum(0)
        centres = centres + (own.T @ x - own.sum(0)[:, None] * centres) / np.maximum(counts, 1)[:, None]
    found = kmeans("whole").cluster_centers()
    assert found.tolist() == kmeans("parts").cluster_centers().tolist()
    np.testing.assert_allclose(found, centres, rtol=1e-5)
    with pytest.raises(ArgumentError, match="first batch has 2 points"):
        kmeans("short").train(lambda: batches[2:])


def test_the_mark_of_padding_is_not_a_coordinate_of_points(tmp_path):
    kmeans = tab.KMeans(2, config=quiet(tmp_path), use_mini_batch=False)
    kmeans.train(lambda: [{"x": POINTS[1:3], "is_real_example": np.ones(2, np.float32)}], steps=1)
    assert sorted(kmeans.cluster_centers().tolist()) == POINTS[1:3].tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"initial_clusters": "kmeans_plus_plus", "use_mini_batch": False, "relative_tolerance": 1e-4},
        {"initial_clusters": "kmeans_plus_plus", "mini_batch_steps_per_iteration": 2},
        {"distance_metric": "cosine", "seed": 1},
        {"initial_clusters": lambda points, count: points[:count], "use_mini_batch": False},
    ],
    ids=["full", "mini", "cosine", "function"],
)
def test_k_means_finds_clusters(tmp_path, options):
    centres = np.array([[8.0, 0.0], [0.0, 8.0], [-8.0, -8.0]])
    points = (centres[np.arange(90) % 3] + np.random.default_rng(5).normal(0, 0.3, (90, 2))).astype(np.float32)
    kmeans = tab.KMeans(3, config=quiet(tmp_path), feature_columns=[tab.numeric_column("x", 2)], **options)
    kmeans.train(lambda: [{"x": points}] * 40)
    found = np.array(list(kmeans.predict_cluster_index(lambda: [{"x": points}])))
    assert all(len(set(found[kind::3])) == 1 for kind in range(3))
    assert len(set(found[:3])) == 3
    if "relative_tolerance" in options:
        assert "changed by less" in str(kmeans.stop_reason)


def interactions(count):
    """Labels that depend on pairs of categories, so that no sum of weights predicts them."""
    rng = np.random.default_rng(2)
    user, item = rng.integers(0, 6, count), rng.integers(0, 6, count)
    features = {"user": user, "item": item, "x": rng.normal(size=(count, 2)).astype(np.float32)}
    return features, ((user + item) % 2)[:, None]


USER, ITEM = (tab.categorical_column_with_identity(key, 6) for key in ("user", "item"))
X = tab.numeric_column("x", 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda config: tab.DCNEstimator(
            BinaryClassHead(),
            [tab.embedding_column(USER, 4), tab.embedding_column(ITEM, 4), X],
            hidden_units=[16],
            optimizer=lambda: tab.choose_optimizer("Adam", 0.02).transformation,
            config=config,
        ),
        lambda config: tab.DCNEstimator(
            BinaryClassHead(),
            [tab.embedding_column(USER, 4), tab.embedding_column(ITEM, 4), X],
            hidden_units=[8],
            projection_dim=4,
            structure="parallel",
            optimizer=lambda: tab.choose_optimizer("Adam", 0.02).transformation,
            config=config,
        ),
        lambda config: tab.DLRMEstimator(
            BinaryClassHead(),
            [X],
            [tab.embedding_column(USER, 4), tab.embedding_column(ITEM, 4)],
            optimizer=lambda: tab.choose_optimizer("Adam", 0.02).transformation,
            config=config,
        ),
        lambda config: tab.TwoTowerEstimator(
            BinaryClassHead(),
            [tab.embedding_column(USER, 4)],
            [tab.embedding_column(ITEM, 4)],
            8,
            normalize=False,
            optimizer=lambda: tab.choose_optimizer("Adam", 0.02).transformation,
            config=config,
        ),
    ],
    ids=["dcn", "dcn_low_rank", "dlrm", "two_tower"],
)
@pytest.mark.slow
def test_models_of_interactions_learn(tmp_path, make):
    features, labels = interactions(256)
    estimator = make(quiet(tmp_path)).train(lambda: [(features, labels)] * 150)
    assert estimator.evaluate(lambda: [(features, labels)])["accuracy"] > 0.95


@pytest.mark.slow
def test_two_towers_for_retrieval(tmp_path):
    features, _ = interactions(32)
    features["item"] = features["user"]
    towers = tab.TwoTowerEstimator(
        RetrievalHead(4, candidate_id_column="item", temperature=0.2),
        [tab.embedding_column(USER, 4)],
        [tab.embedding_column(ITEM, 4)],
        4,
        optimizer=lambda: tab.choose_optimizer("Adagrad", 0.2).transformation,
        keep_features=["item"],
        config=quiet(tmp_path),
    )
    before = towers.train(lambda: [features], steps=1).evaluate(lambda: [features])
    after = towers.train(lambda: [features] * 60).evaluate(lambda: [features])
    assert after["loss"] < before["loss"]
    assert after["in_batch_recall@1"] > before["in_batch_recall@1"]
    assert next(iter(towers.predict(lambda: [features])))["query"].shape == (4,)


def combined(folder):
    columns = [tab.categorical_column_with_hash_bucket("user", 50, "int64"), X]
    return tab.DNNLinearCombinedClassifier(
        linear_feature_columns=columns,
        dnn_feature_columns=[tab.embedding_column(columns[0], 4), X],
        dnn_hidden_units=[4],
        dnn_dropout=0.3,
        config=quiet(folder, save_checkpoints_steps=3),
    )


def test_resumed_it_has_the_same_weights_to_the_bit(tmp_path):
    features, labels = interactions(64)
    data = ec.inputs.numpy_input_fn(features, labels, batch_size=10, num_epochs=None, shuffle=True, seed=4)
    whole = combined(tmp_path / "whole").train(data, max_steps=8).variables
    combined(tmp_path / "parts").train(data, max_steps=5)
    parts = combined(tmp_path / "parts").train(data, max_steps=8).variables
    assert whole.keys() == parts.keys()
    for name, value in whole.items():
        assert value.tobytes() == parts[name].tobytes(), name


def test_a_warm_start_with_another_vocabulary(tmp_path):
    def classifier(words, folder, **more):
        city = tab.categorical_column_with_vocabulary_list("city", words, num_oov_buckets=1)
        return tab.DNNClassifier([3], [tab.embedding_column(city, 2)], config=quiet(tmp_path / folder), **more)

    table = "dnn/input_from_feature_columns/input_layer/city_embedding/embedding_weights"
    features, labels = {"city": np.array(["a", "b", "c", "z"])}, np.array([[0], [1], [0], [1]])
    old = classifier(["a", "b", "c"], "old").train(lambda: [(features, labels)] * 3)
    info = ec.VocabInfo(["c", "new", "a"], 3, 1, ["a", "b", "c"])
    start = ec.WarmStartSettings(old.model_dir, var_name_to_vocab_info={table: info})
    still = {"optimizer": lambda: tab.choose_optimizer("SGD", 1e-30).transformation}
    new = classifier(["c", "new", "a"], "new", warm_start_from=start, **still).train(lambda: [(features, labels)])
    before, after = old.variables[table], new.variables[table]
    assert after[[0, 2]].tolist() == before[[2, 0]].tolist()
    assert after[1].tolist() == [0.0, 0.0]


def test_shared_tables_are_trained(tmp_path):
    columns = tab.shared_embeddings([USER, ITEM], 2)
    features, labels = interactions(16)
    estimator = tab.DNNLinearCombinedClassifier(
        dnn_feature_columns=columns, dnn_hidden_units=[3], dnn_optimizer="Adagrad", config=quiet(tmp_path)
    )
    table = "item_user_shared_embedding"
    first = estimator.train(lambda: [(features, labels)]).variables[table]
    after = estimator.train(lambda: [(features, labels)] * 3).variables[table]
    assert (first != after).any()
