"""Tests of the plots of an evaluation: pictures in its event file, on request."""

import numpy as np
import optax
import pytest

import estimator_core as ec
import estimator_heads as eh
from estimator_core.errors import PluginError
from estimator_heads.plots import figures


def model(head):
    def model_fn(features, labels, mode):
        kernel = ec.get_variable("kernel", (2, head.logits_dimension))
        return head.create_estimator_spec(features, mode, features["x"] @ kernel, labels, optimizer=optax.sgd(1.0))

    return model_fn


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_pictures_of_an_evaluation(tmp_path, classes):
    pytest.importorskip("matplotlib")
    from tensorboard.backend.event_processing.event_accumulator import IMAGES, EventAccumulator

    head = eh.BinaryClassHead(plots=True) if classes == 2 else eh.MultiClassHead(3, plots=True, name="m")
    rng = np.random.default_rng(1)
    features, labels = {"x": rng.normal(size=(50, 2)).astype(np.float32)}, rng.integers(0, classes, 50)
    once = ec.inputs.numpy_input_fn(features, labels, batch_size=16, num_epochs=1, shuffle=False)
    estimator = ec.Estimator(model(head), str(tmp_path)).train(once, steps=2)
    estimator.evaluate(once)
    events = EventAccumulator(str(tmp_path / "eval"), size_guidance={IMAGES: 0}).Reload()
    plots = {"confusion_matrix", "calibration"} | ({"roc", "precision_recall"} if classes == 2 else set())
    prefix = "plots/" if classes == 2 else "plots/m/"
    tags = {tag.removesuffix("/image").removesuffix("/0") for tag in events.Tags()["images"]}
    assert tags == {prefix + plot for plot in plots}
    assert {(image.width, image.height) for tag in events.Tags()["images"] for image in events.Images(tag)} == {
        (500, 450)
    }
    assert {image.step for tag in events.Tags()["images"] for image in events.Images(tag)} == {2}


def test_the_data_of_the_precision_recall_curve(tmp_path):
    pytest.importorskip("matplotlib")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.pr_curve import plugin_data_pb2
    from tensorboard.util import tensor_util

    head = eh.BinaryClassHead(plots=True)
    rng = np.random.default_rng(1)
    features, labels = {"x": rng.normal(size=(50, 2)).astype(np.float32)}, rng.integers(0, 2, 50)
    once = ec.inputs.numpy_input_fn(features, labels, batch_size=16, num_epochs=1, shuffle=False)
    estimator = ec.Estimator(model(head), str(tmp_path)).train(once, steps=2)
    estimator.evaluate(once)
    probabilities = np.stack([one["probabilities"][1] for one in estimator.predict(once)])
    events = EventAccumulator(str(tmp_path / "eval")).Reload()
    content = events.PluginTagToContent("pr_curves")["plots/pr_curve"]
    thresholds = plugin_data_pb2.PrCurvePluginData.FromString(content).num_thresholds
    (point,) = events.Tensors("plots/pr_curve")
    assert point.step == 2  # the step of the weights, after four evaluation batches
    curve = tensor_util.make_ndarray(point.tensor_proto)
    assert curve.shape == (6, thresholds)
    for index in (20, thresholds // 2, thresholds - 20):
        called = probabilities > index / (thresholds - 1)
        assert curve[:4, index].tolist() == [
            np.sum(called & (labels == 1)),
            np.sum(called & (labels == 0)),
            np.sum(~called & (labels == 0)),
            np.sum(~called & (labels == 1)),
        ]


def test_figures_are_pictures_of_their_data():
    pytest.importorskip("matplotlib")
    first = figures.confusion_matrix_figure(np.array([[5.0, 1.0], [0.0, 3.0]]), ["no", "yes"])
    second = figures.confusion_matrix_figure(np.array([[1.0, 5.0], [3.0, 0.0]]), ["no", "yes"])
    assert first.shape == (450, 500, 3)
    assert first.dtype == np.uint8
    assert not np.array_equal(first, second)
    nothing = np.zeros(3)
    assert figures.calibration_figure(nothing, nothing, nothing, 0.0).shape == first.shape
    assert figures.roc_figure(nothing, nothing, 0.5).shape == first.shape
    assert figures.precision_recall_figure(nothing, nothing, 0.0).shape == first.shape


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    head = eh.BinaryClassHead(plots=True)
    with pytest.raises(PluginError, match=r"estimator-heads\[plots\]"):
        head.create_estimator_spec({}, "eval", np.zeros((2, 1)), np.zeros((2, 1)))


def test_no_plots_without_asking():
    spec = eh.BinaryClassHead().create_estimator_spec({}, "eval", np.zeros((2, 1)), np.zeros((2, 1)))
    assert spec.evaluation_hooks == ()
