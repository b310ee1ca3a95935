"""Tests of the table: every public symbol of the real package has a row, and every home exists."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_migration import Verdict, check, find, table
from estimator_migration.canonical import canonical
from plugins.migration.tests import homes

RECORDED: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("recorded").joinpath("symbols_2_15_1.json").read_text(encoding="utf-8")
)
PAGE = Path(__file__).parents[3] / "docs" / "migration.md"


@pytest.mark.parametrize("module", RECORDED)
def test_every_public_symbol_has_a_row_of_its_own(module: str) -> None:
    names = [canonical(f"tensorflow{module.removeprefix('tf')}.{name}") for name in RECORDED[module]]
    assert [name for name in names if name not in table()] == []


def test_the_recording_is_of_the_whole_package() -> None:
    assert {module: len(names) for module, names in RECORDED.items() if "estimator" in module} == {
        "tf.estimator": 74,
        "tf.compat.v1.estimator": 83,
    }


def test_clipping_by_the_own_norm_is_not_clipping_by_the_global_norm() -> None:
    """The table once named `optax.clip_by_global_norm` for `tf.clip_by_norm`. The numbers are those of TensorFlow."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    norm, jnp = 1.0, jax.numpy

    def clip(x: Any) -> Any:
        return x * norm / jnp.maximum(jnp.linalg.norm(x), norm)

    row = find("tensorflow.clip_by_norm")
    assert row is not None
    assert "x * norm / jnp.maximum(jnp.linalg.norm(x), norm)" in row.how
    each = "optax.stateless(lambda gradients, _: jax.tree.map(clip, gradients))"
    assert each in row.how
    chain = optax.chain(optax.stateless(lambda gradients, _: jax.tree.map(clip, gradients)), optax.sgd(-1.0))
    gradients = {"a": np.array([3.0, 4.0], np.float32), "b": np.array([[0.3], [0.4]], np.float32)}
    found, _ = chain.update(gradients, chain.init(gradients))
    np.testing.assert_allclose(found["a"], [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(found["b"], [[0.3], [0.4]], rtol=1e-6)


@pytest.mark.parametrize("name", ["Adam", "Adagrad", "Ftrl", "SGD", "RMSprop"])
def test_the_clipping_arguments_of_keras_optimizers_are_named(name: str) -> None:
    row = find(f"tensorflow.keras.optimizers.legacy.{name}")
    assert row is not None
    assert {"clipvalue=", "clipnorm=", "global_clipnorm="} <= set(row.how.split())


def test_combiners_of_sparse_embeddings() -> None:
    """The table had no word on `combiner=`. The numbers are those of TensorFlow."""
    row = find("tensorflow.nn.embedding_lookup_sparse")
    assert row is not None
    parts = "(rows * w[..., None]).sum(1)", "w.sum(1)[:, None]", "jnp.sqrt((w ** 2).sum(1))[:, None]", "sqrtn"
    assert [part for part in parts if part not in row.how] == []
    rows, w = np.array([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]]), np.array([[1.0, 2.0, 0.0]])
    total = (rows * w[..., None]).sum(1)
    np.testing.assert_allclose(total, [[7, 10]])
    np.testing.assert_allclose(total / w.sum(1)[:, None], [[2.3333333, 3.3333333]], rtol=1e-6)
    np.testing.assert_allclose(total / np.sqrt((w**2).sum(1))[:, None], [[3.1304953, 4.472136]], rtol=1e-6)


def test_a_placeholder_of_a_receiver_is_a_feature() -> None:
    row = find("tensorflow.compat.v1.placeholder")
    assert row is not None
    assert row.place == "ec.export.Feature"


def test_each_optimizer_of_keras_names_the_one_with_its_update() -> None:
    """`optax.adam` and `optax.adagrad` have another epsilon, and `optax.rmsprop` has another default."""
    homes_of = {"Adam": "heads.adam", "Adagrad": "heads.adagrad", "Ftrl": "heads.ftrl"}
    for module in ("keras.optimizers", "keras.optimizers.legacy", "optimizers", "optimizers.legacy"):
        for name, home in homes_of.items():
            row = find(f"tensorflow.{module}.{name}")
            assert row is not None
            assert row.place == f"estimator_{home}"
        rmsprop = find(f"tensorflow.{module}.RMSprop")
        assert rmsprop is not None
        assert "optax.rmsprop(rate, eps=1e-7, eps_in_sqrt=False)" in rmsprop.how


@pytest.mark.plugins
@pytest.mark.libraries
@pytest.mark.parametrize(("name", "where"), [("RMSprop", "eps_in_sqrt=True"), ("Adagrad", "under the root")])
def test_optimizers_of_keras_from_2_11_have_their_epsilon_under_the_root(name: str, where: str) -> None:
    """The optimizers of Keras 3 are those of `tf.keras` from TensorFlow 2.11.

    The table once named only the older update.
    """
    keras, optax = pytest.importorskip("keras"), pytest.importorskip("optax")
    if keras.backend.backend() != "jax":
        pytest.skip("another backend")
    small, start = {"initial_accumulator_value": 0.0}, np.ones(3, np.float32)
    made = {
        "RMSprop": (keras.optimizers.RMSprop(0.1), optax.rmsprop(0.1, eps=1e-7, eps_in_sqrt=True)),
        "Adagrad": (keras.optimizers.Adagrad(0.1, **small), optax.adagrad(0.1, **small)),
    }
    old, new = made[name]
    kept, variables = keras.Variable(start), start
    old.build([kept])
    state = new.init(variables)
    for gradient in np.array([[1e-4, -1e-3, 1], [1e-5, 1e-3, -1]], np.float32):
        old.apply([gradient], [kept])
        update, state = new.update(gradient, state, variables)
        variables = optax.apply_updates(variables, update)
    np.testing.assert_allclose(np.asarray(kept), np.asarray(variables), rtol=1e-6)
    row = find(f"tensorflow.keras.optimizers.{name}")
    assert row is not None
    assert where in row.how
    assert "from TensorFlow 2.11 outside legacy" in row.how


@pytest.mark.plugins
@pytest.mark.libraries
def test_every_home_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    for row in table().values():
        module, _, name = row.home.partition(":")
        found = importlib.import_module(module) if module else None
        for part in filter(None, name.split(".")):
            assert hasattr(found, part), f"{row.name}: {row.home}"
            found = getattr(found, part)


@pytest.mark.plugins
@pytest.mark.parametrize("module", ["tf.estimator", "tf.compat.v1.estimator"])
def test_every_name_that_is_typed_on_ec_answers(module: str) -> None:
    for name in RECORDED[module]:
        path, _, last = name.rpartition(".")
        owner = getattr(ec, path) if path in ("export", "inputs") else ec
        if not hasattr(owner, last):
            with pytest.raises(AttributeError, match=": it is "):
                getattr(owner, last)


@pytest.mark.plugins
def test_every_name_of_the_table_that_is_typed_on_ec_answers() -> None:
    """This includes the names of tf.estimator, tf.contrib.learn, tf.train, tf.metrics and tf.summary."""
    assert homes.lacking() == {}
    answered = 0
    for name, _ in homes.typed():
        if homes.found_on_ec(name):
            continue
        face, _, last = name.rpartition(".")
        with pytest.raises(AttributeError, match=": it is "):
            getattr(getattr(ec, face) if face else ec, last)
        answered += 1
    assert answered > 250


#: Names that once had no row on any page.
WITHOUT_A_ROW = {
    "contrib.learn.ModeKeys.INFER": "estimator_core:ModeKeys.INFER",
    "compat.v1.train.SessionRunHook": "estimator_core:Hook",
    "estimator.LoggingTensorHook": "estimator_hooks:LoggingTensorHook",
    "estimator.BestExporter": "estimator_exporters:BestExporter",
    "estimator.BinaryClassHead": "estimator_heads:BinaryClassHead",
    "contrib.estimator.multi_head": "estimator_heads:MultiHead",
    "contrib.tpu.TPUEstimator": "estimator_core:Estimator",
    "contrib.layers.optimize_loss": "optax:chain",
    "contrib.slim.conv2d": "estimator_core:module",
}


@pytest.mark.parametrize("name", WITHOUT_A_ROW)
def test_what_had_no_row_has_one(name: str) -> None:
    row = find(f"tensorflow.{name}")
    assert row is not None
    assert row.home == WITHOUT_A_ROW[name]


def test_other_packages_have_rows_that_say_how() -> None:
    source = "import tf_metrics\nimport horovod.tensorflow as hvd\nhvd.init()\ntf_metrics.precision(l, p, 3, [1])\n"
    *_, horovod, precision = check(source)
    assert horovod.row.verdict is Verdict.GONE
    assert 'RunConfig(mesh={"data": -1})' in horovod.row.how
    assert precision.row.home == "estimator_heads.metrics:class_precision"
    assert "pos_indices is indices=" in precision.row.how
    assert 'average="micro"' in precision.row.how


@pytest.mark.parametrize(
    ("name", "verdict", "note"),
    [
        ("LoggingTensorHook", Verdict.DIFFERS, "names of tensors"),
        ("NanTensorHook", Verdict.DIFFERS, "names of tensors"),
        ("FeedFnHook", Verdict.REWRITE, "feed_fn(features, labels)"),
        ("GlobalStepWaiterHook", Verdict.DIFFERS, "a checkpoint of the step"),
        ("StepCounterHook", Verdict.SAME, ""),
        ("StopAtStepHook", Verdict.DIFFERS, "the start of each call"),
        ("SummarySaverHook", Verdict.DIFFERS, "summary_op="),
    ],
)
@pytest.mark.parametrize("module", ["tensorflow.estimator", "tensorflow.train"])
def test_a_hook_has_the_note_of_its_own_differences(name: str, verdict: Verdict, note: str, module: str) -> None:
    row = find(f"{module}.{name}")
    assert row is not None
    assert row.verdict is verdict
    assert note in row.how
    assert ("names of tensors" in row.how) == (name in ("LoggingTensorHook", "NanTensorHook"))


def test_what_loads_the_data_of_an_input_does_it_in_begin() -> None:
    """Applies to `after_create_session` of a custom IteratorInitializerHook.

    `after_create` runs after the first batch.
    """
    source = (
        "from tensorflow.train import SessionRunHook\n"
        "class IteratorInitializerHook(SessionRunHook):\n    def after_create_session(self, session, coord): ...\n"
    )
    *_, use = check(source)
    assert use.row.name == "hook.after_create_session"
    assert "begin(run) for code that loads the data of an input" in use.row.how


@pytest.mark.skipif(not PAGE.is_file(), reason="the pages are not beside these tests")
def test_the_page_says_so_too() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "`begin`, or `estimator_hooks.IteratorInitializerHook` itself" in page


def test_rows_say_what_to_do() -> None:
    for row in table().values():
        if row.verdict in (Verdict.DIFFERS, Verdict.REWRITE, Verdict.GONE):
            assert row.how, row.name
        if row.verdict in (Verdict.RENAMED, Verdict.DIFFERS):
            assert row.home, row.name
        if row.verdict is Verdict.GONE:
            assert not row.home, row.name


def test_a_name_that_is_not_in_the_table_is_unknown() -> None:
    for name in ("tensorflow.estimator.Estimatr", "tensorflow.contrib.learn.Nothing", "tensorflow.flying"):
        row = find(name)
        assert row is not None
        assert row.verdict is Verdict.UNKNOWN


#: Names in private modules of tensorflow_estimator that programs import, and the homes of their successors.
PRIVATE = {
    "canned.dnn.DNNClassifierV2": "estimator_canned_tabular:DNNClassifier",
    "canned.dnn.dnn_logit_fn_builder_v2": "estimator_canned_tabular:dense_features",
    "canned.kmeans.KMeansClustering": "estimator_canned_tabular:KMeans",
    "canned.metric_keys.MetricKeys.AUC": "estimator_heads:MetricKeys",
    "canned.optimizers.get_optimizer_instance_v2": "estimator_canned_tabular:choose_optimizer",
    "canned.parsing_utils.classifier_parse_example_spec_v2": "estimator_canned_tabular:classifier_parse_example_spec",
    "canned.prediction_keys.PredictionKeys": "estimator_heads:PredictionKeys",
    "canned.rnn.RNNClassifier": "estimator_canned_tabular:RNNClassifier",
    "early_stopping.stop_if_no_decrease_hook": "estimator_hooks:stop_if_no_decrease_hook",
    "export.export.ServingInputReceiver.features": "estimator_core.export:ServingInputReceiver",
    "export.export.build_raw_supervised_input_receiver_fn": (
        "estimator_core.export:build_supervised_input_receiver_fn_from_input_fn"
    ),
    "extenders.add_metrics": "estimator_core:add_metrics",
    "head.base_head.Head.create_estimator_spec": "estimator_heads:BaseHead",
    "head.sequential_head.SequentialHeadWrapper": "estimator_heads:SequentialHeadWrapper",
    "hooks.hooks.InMemoryEvaluatorHook": "estimator_hooks:InMemoryEvaluatorHook",
    "inputs.numpy_io.numpy_input_fn": "estimator_core.inputs:numpy_input_fn",
    "keras_lib.model_to_estimator": "estimator_canned_tabular:model_to_estimator",
    "tpu.tpu_config.TPUConfig": "estimator_core:RunConfig",
    "tpu.tpu_estimator.TPUEstimator": "estimator_core:Estimator",
}


@pytest.mark.parametrize("package", ["tensorflow_estimator.python.estimator", "tensorflow.python.estimator"])
@pytest.mark.parametrize("name", PRIVATE)
def test_a_name_of_a_private_module_has_a_row(name: str, package: str) -> None:
    row = find(f"{package}.{name}")
    assert row is not None
    assert row.home == PRIVATE[name]


@pytest.mark.parametrize(
    "module", ["canned.dnn", "estimator", "export.export_lib", "head.base_head", "hooks.hooks", "tpu.tpu_estimator"]
)
def test_the_import_of_a_private_module_is_no_unknown_name(module: str) -> None:
    package, _, name = f"tensorflow_estimator.python.estimator.{module}".rpartition(".")
    (use,) = check(f"from {package} import {name}\n")
    assert use.row.verdict is Verdict.REWRITE
