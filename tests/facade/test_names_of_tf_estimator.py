"""Tests of names and arguments of tf.estimator: they are accepted if they have no effect, or answered with the
replacement.
"""

import copy
import importlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import estimator_core as ec
from estimator_core.builtin_hooks import CheckpointSaverHook
from estimator_core.errors import ArgumentError, ArgumentTypeError

DEFAULTS = {
    "session_config": None,
    "train_distribute": None,
    "eval_distribute": None,
    "device_fn": None,
    "protocol": None,
    "experimental_distribute": None,
    "experimental_max_worker_delay_secs": None,
    "session_creation_timeout_secs": 7200,
    "checkpoint_save_graph_def": True,
}


def test_run_config_takes_the_defaults_of_the_original() -> None:
    config = ec.RunConfig(model_dir="runs", tf_random_seed=3, **DEFAULTS)
    assert config == ec.RunConfig("runs", tf_random_seed=3)
    assert copy.deepcopy(config).replace(tf_random_seed=4).tf_random_seed == 4


@pytest.mark.parametrize("name", DEFAULTS)
def test_run_config_refuses_other_values_of_them(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"RunConfig no longer takes '{name}': "):
        ec.RunConfig(**{name: "something"})


def test_all_that_run_config_refuses_is_named_at_once() -> None:
    told = "RunConfig no longer takes 'session_config': .*XLA_FLAGS.*; 'train_distribute': .*mesh=.*; 'protocol': "
    given = {"protocol": "grpc", "train_distribute": object(), "session_config": object(), "device_fn": None}
    with pytest.raises(ArgumentError, match=told) as error:
        ec.RunConfig(**given)
    assert "device_fn" not in str(error.value)
    with pytest.raises(ArgumentError, match=told):
        ec.RunConfig("runs").replace(**given)
    assert ec.RunConfig("runs").replace(session_config=None) == ec.RunConfig("runs")


def test_run_config_by_position() -> None:
    assert ec.RunConfig("runs").model_dir == "runs"
    with pytest.raises(TypeError):
        ec.RunConfig("runs", 3)


def test_properties_of_clusters_say_where_they_are() -> None:
    config = ec.RunConfig()
    for name in ("num_worker_replicas", "global_id_in_cluster"):
        with pytest.raises(AttributeError, match=r"config\.process_group has the count and index"):
            getattr(config, name)
    with pytest.raises(AttributeError, match="no parameter servers"):
        _ = config.num_ps_replicas
    for name in (*DEFAULTS, "cluster_spec", "master", "evaluation_master", "service"):
        with pytest.raises(AttributeError, match=f"RunConfig has no attribute '{name}': "):
            getattr(config, name)
    assert not hasattr(config, "nothing_of_the_kind")


def test_train_spec_by_position() -> None:
    assert ec.TrainSpec(list, 100) == ec.TrainSpec(list, max_steps=100)


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda: ec.TrainSpec(list, 100, []), "input_fn and max_steps by position and the rest by name. Write hooks="),  # type: ignore[call-arg]
        (lambda: ec.EvalSpec(list, 100, "b"), "EvalSpec takes input_fn by position .* Write steps=..., name=..."),  # type: ignore[call-arg]
        (lambda: ec.EstimatorSpec("eval", {}, 0.0), "takes mode by position .* Write predictions=..., loss=..."),  # type: ignore[call-arg]
    ],
)
def test_arguments_by_position_are_refused_with_their_names(call: Callable[[], object], cure: str) -> None:
    with pytest.raises(ArgumentTypeError, match=cure):
        call()


def test_scaffold_without_a_saver() -> None:
    assert ec.Scaffold(saver=None, init_op=None) == ec.Scaffold()
    with pytest.raises(ArgumentError, match="Scaffold no longer takes 'saver': the run saves"):
        ec.Scaffold(saver=object())


def test_checkpoint_saver_hook_writes_into_the_model_dir() -> None:
    assert CheckpointSaverHook(checkpoint_dir=None, save_steps=10).next_step(0) == 10
    with pytest.raises(ArgumentError, match="no longer takes 'checkpoint_dir': the run writes into its model_dir"):
        CheckpointSaverHook(checkpoint_dir="elsewhere", save_steps=10)


def test_the_old_name_of_the_export() -> None:
    estimator = ec.Estimator(lambda features, mode: None, model_dir="runs")
    with pytest.raises(AttributeError, match="it is export_saved_model, and returns a str"):
        estimator.export_savedmodel("out", list)
    with pytest.raises(ArgumentError, match="export_saved_model no longer takes 'as_text'"):
        estimator.export_saved_model("out", list, as_text=True)
    with pytest.raises(ArgumentError, match="no longer takes 'strip_default_attrs': there are no operations"):
        estimator.export_saved_model("out", list, strip_default_attrs=True)


def test_modes_of_contrib_learn() -> None:
    assert ec.ModeKeys.INFER == ec.ModeKeys.PREDICT


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("BestExporter", "estimator_exporters.BestExporter (pip install estimator-exporters)"),
        ("BinaryClassHead", "estimator_heads.BinaryClassHead (pip install estimator-heads)"),
        ("DNNClassifier", "estimator_canned_tabular.DNNClassifier (pip install estimator-canned-tabular)"),
        ("LoggingTensorHook", "estimator_hooks.LoggingTensorHook (pip install estimator-hooks)"),
        ("SessionRunHook", "ec.Hook"),
        ("CheckpointSaverListener", "ec.CheckpointListener"),
    ],
)
def test_names_that_are_elsewhere_answer_with_their_home(name: str, home: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(ec, name)
    assert str(error.value) == f"module 'estimator_core' has no attribute '{name}': it is {home}"


@pytest.mark.plugins
def test_the_homes_exist() -> None:
    homes = json.loads(Path(ec.__file__).with_name("_homes.json").read_text())
    of_packages = [home.split(" ")[0].split(".") for home in homes.values() if home.startswith("estimator_")]
    assert len(of_packages) > 40
    for module, *names in of_packages:
        found = importlib.import_module(module)
        for name in names:
            found = getattr(found, name)


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (lambda: ec.Estimator(lambda features, mode: None, "runs"), "fit", r"it is train\(input_fn, steps="),
        (ec.RunConfig, "uid", "it is not there: configurations are compared by value"),
        (ec.Scaffold, "saver", "it is not there: the run saves, as RunConfig"),
        (lambda: ec.metrics, "AUC", r"has no attribute 'AUC': it is written another way: .*estimator_heads\.metrics"),
        (lambda: ec.summary, "audio", "it is without a successor: Write your own hook"),
        (lambda: ec, "AdamOptimizer", r"it is estimator_heads\.adam \(pip install estimator-heads\)"),
    ],
)
def test_modules_and_classes_answer_too(owner: Callable[[], object], name: str, told: str) -> None:
    with pytest.raises(AttributeError, match=told):
        getattr(owner(), name)


@pytest.mark.parametrize("owner", [ec, ec.metrics, ec.summary, ec.RunConfig(), ec.Scaffold()])
def test_a_name_that_nobody_had_is_only_missing(owner: object) -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing_of_the_kind'$"):
        _ = owner.nothing_of_the_kind  # type: ignore[attr-defined]
