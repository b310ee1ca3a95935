"""Tests of the data for TensorBoard's pages, read by TensorBoard's own code."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.testing import HookSuite
from estimator_hooks import GraphHook, HParamsHook, VariableHistogramsHook
from estimator_hooks.tensorboard.hparams import plain_hparams

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


class TestHParams(HookSuite):
    def make(self):
        return HParamsHook({"rate": 0.1})


class TestGraph(HookSuite):
    def make(self):
        return GraphHook()


class TestHistograms(HookSuite):
    def make(self):
        return VariableHistogramsHook(every_n_steps=2)


def model_fn(features, labels, mode, params):
    with ec.variable_scope("dense"):
        y = features["x"] * ec.get_variable("kernel", ()) + ec.get_variable("bias", ())
    loss = jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(params["rate"] if params else 0.1))


def trained(model_dir, params, hooks=(), steps=2, **settings):
    x = np.arange(8, dtype=np.float32)
    rows = ec.inputs.numpy_input_fn({"x": x / 8}, x, batch_size=4, num_epochs=None, shuffle=False)
    estimator = ec.Estimator(model_fn, str(model_dir), ec.RunConfig(**settings), params)
    return estimator.train(rows, hooks=list(hooks), steps=steps)


def hparams_of(model_dir):
    """The data of TensorBoard's HPARAMS page in a directory, by tag."""
    from tensorboard.plugins.hparams import plugin_data_pb2

    accumulator = event_accumulator.EventAccumulator(str(model_dir)).Reload()
    found = {}
    try:
        contents = accumulator.PluginTagToContent("hparams")
    except KeyError:  # no data of this page
        return {}
    for tag, content in contents.items():
        data = plugin_data_pb2.HParamsPluginData.FromString(content)
        found[tag] = getattr(data, data.WhichOneof("data"))
    return found


def test_the_params_of_an_estimator_are_hyperparameters(tmp_path):
    trained(tmp_path, {"rate": 0.25, "layers": [8, 4], "name": "small", "fast": True, "table": np.zeros(3)})
    found = hparams_of(tmp_path)
    started = found["_hparams_/session_start_info"].hparams
    assert {name: getattr(value, value.WhichOneof("kind")) for name, value in started.items()} == {
        "rate": 0.25,
        "layers": "[8, 4]",
        "name": "small",
        "fast": True,
    }
    infos = found["_hparams_/experiment"].hparam_infos
    assert {info.name for info in infos} == set(started)
    assert found["_hparams_/session_end_info"].status == 1


def test_metrics_are_those_of_the_directories(tmp_path):
    trained(tmp_path, None, [HParamsHook({"rate": 0.1}, metrics=("loss", "eval_test/auc"))])
    names = [(info.name.group, info.name.tag) for info in hparams_of(tmp_path)["_hparams_/experiment"].metric_infos]
    assert names == [("", "loss"), ("eval_test", "auc")]


def test_a_failed_run_is_shown_as_failed(tmp_path):
    class Fails(ec.Hook):
        def next_step(self, step):
            return step + 1

        def after_step(self, run, step, out):
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        trained(tmp_path, {"rate": 0.1}, [Fails()])
    assert hparams_of(tmp_path)["_hparams_/session_end_info"].status == 2


@pytest.mark.parametrize(("params", "settings"), [(None, {}), ({"rate": 0.1}, {"save_summary_steps": None})])
def test_without_params_or_summaries_nothing_is_written(tmp_path, params, settings):
    trained(tmp_path, params, **settings)
    assert hparams_of(tmp_path) == {}


def test_a_resumed_run_keeps_its_hyperparameters_and_its_curve(tmp_path):
    trained(tmp_path, {"rate": 0.25})
    trained(tmp_path, {"rate": 0.25})
    assert hparams_of(tmp_path)["_hparams_/session_start_info"].hparams["rate"].number_value == 0.25
    losses = event_accumulator.EventAccumulator(str(tmp_path)).Reload().Scalars("loss")
    assert [point.step for point in losses] == sorted({point.step for point in losses})


@dataclass
class Settings:
    rate: float = 0.5


class Values:
    values = 3


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (Settings(), {"rate": 0.5}),
        (Settings, {}),
        (Values(), {}),
        ([1, 2], {}),
        ({"api_key": "abc", "url": "https://me:abc@host/"}, {"api_key": "***", "url": "https://***@host/"}),
        ({"a": [1, "b"], "c": [object()], "d": math.inf}, {"a": "[1, 'b']", "d": math.inf}),
    ],
)
def test_params_of_every_kind(given, found):
    assert plain_hparams(given) == found


def test_the_graph_has_the_variables_in_their_blocks(tmp_path):
    trained(tmp_path, None, [GraphHook()])
    accumulator = event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    nodes = {node.name: node for node in accumulator.Graph().node}
    assert set(nodes) == {"dense/kernel", "dense/bias", "dense/block"}
    assert set(nodes["dense/block"].input) == {"dense/kernel", "dense/bias"}
    assert nodes["dense/kernel"].attr["dtype"].type == 1


def test_a_resumed_run_draws_no_second_graph(tmp_path):
    trained(tmp_path, None, [GraphHook()])
    first = sorted(tmp_path.glob("events*"))
    trained(tmp_path, None, [GraphHook()])
    (second,) = set(tmp_path.glob("events*")) - set(first)
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    assert not any(event.graph_def for event in loader.LegacyEventFileLoader(str(second)).Load())


@pytest.mark.parametrize("dispatch", [1, 4])
def test_the_histograms_of_the_variables_follow_each_other(tmp_path, dispatch):
    """The histograms have the same bins at several steps, with the values of each step."""
    hook = VariableHistogramsHook(every_n_steps=3, variables="dense/.*")
    trained(tmp_path, None, [hook], steps=7, steps_per_dispatch=dispatch)
    accumulator = event_accumulator.EventAccumulator(str(tmp_path), size_guidance={"histograms": 0}).Reload()
    assert sorted(accumulator.Tags()["histograms"]) == ["variables/dense/bias", "variables/dense/kernel"]
    points = accumulator.Histograms("variables/dense/bias")
    assert [point.step for point in points] == [1, 4, 7]
    values = [point.histogram_value.min for point in points]
    assert values == sorted(values)
    assert values[-1] > values[0] > 0
    assert all(sum(point.histogram_value.bucket) == 1 for point in points)


@pytest.mark.parametrize(("given", "words"), [({"every_n_steps": 0}, "at least 1"), ({"variables": "("}, "expression")])
def test_histograms_refuse_what_they_cannot_use(given, words):
    with pytest.raises(ArgumentError, match=words):
        VariableHistogramsHook(**given)
