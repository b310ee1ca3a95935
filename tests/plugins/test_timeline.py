"""Tests of the order of hook specifications and hook methods in real runs, which docs/plugins/timeline.md shows."""

from importlib import metadata

import pytest

from estimator_core._plugins import Plugins
from estimator_core.hooks import Hook
from estimator_core.testing import (
    InjectedError,
    array_format,
    failing_input_fn,
    tiny_estimator,
    tiny_input_fn,
    tiny_receiver_fn,
)

TRAINING = [
    "estimator_run_hooks train",
    "estimator_run_start train",
    "begin",
    "after_create",
    "before_step",
    "after_step",
    "before_step",
    "after_step",
    "end",
    "estimator_run_end train None",
]


class Recorder:
    """A plugin that records every call."""

    ESTIMATOR_PLUGIN_API = (1, 0)

    def __init__(self):
        self.events = []

    def estimator_run_hooks(self, run):
        self.events.append(f"estimator_run_hooks {run.mode}")
        return [RecordingHook(self.events)]

    def estimator_run_start(self, run):
        self.events.append(f"estimator_run_start {run.mode}")

    def estimator_run_end(self, run, error):
        self.events.append(f"estimator_run_end {run.mode} {error and type(error).__name__}")

    def estimator_checkpoint_saved(self, run, step, path):
        self.events.append(f"estimator_checkpoint_saved {step}")
        self.path = path

    def estimator_evaluation_finished(self, run, metrics):
        self.events.append(f"estimator_evaluation_finished {run.name} {metrics['global_step']}")

    def estimator_export_written(self, path, format_name):
        self.events.append(f"estimator_export_written {format_name}")
        self.path = path


class RecordingHook(Hook):
    def __init__(self, events):
        self.events = events

    def begin(self, run):
        self.events.append("begin")

    def after_create(self, run):
        self.events.append("after_create")

    def before_step(self, run, step):
        self.events.append("before_step")

    def after_step(self, run, step, out):
        self.events.append("after_step")

    def end(self, run):
        self.events.append("end")


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def estimator(tmp_path, recorder):
    plugins = Plugins(autoload=False, extra=[recorder, array_format], environ={}, strict=True)
    return tiny_estimator(tmp_path, plugins=plugins, prefetch=0)


def without_saves(events):
    return [event for event in events if not event.startswith("estimator_checkpoint_saved")]


def test_training(estimator, recorder):
    estimator.train(tiny_input_fn(), steps=2)
    assert without_saves(recorder.events) == TRAINING
    saves = [event for event in recorder.events if event not in TRAINING]
    assert saves[-1] == "estimator_checkpoint_saved 2"
    assert recorder.events[-1] == "estimator_run_end train None"
    assert recorder.path == estimator.latest_checkpoint()


def test_a_training_that_fails(estimator, recorder):
    with pytest.raises(InjectedError):
        estimator.train(failing_input_fn(tiny_input_fn(), at_batch=2), steps=2)
    assert without_saves(recorder.events)[-2:] == ["end", "estimator_run_end train InjectedError"]


def test_evaluation(estimator, recorder):
    estimator.train(tiny_input_fn(), steps=2)
    recorder.events.clear()
    estimator.evaluate(tiny_input_fn(epochs=1), steps=1, name="test")
    assert recorder.events == [
        "estimator_run_hooks eval",
        "estimator_run_start eval",
        "begin",
        "after_create",
        "before_step",
        "after_step",
        "end",
        "estimator_evaluation_finished test 2",
        "estimator_run_end eval None",
    ]


def test_prediction(estimator, recorder):
    estimator.train(tiny_input_fn(), steps=2)
    recorder.events.clear()
    assert len(list(estimator.predict(tiny_input_fn(epochs=1, batch_size=40)))) == 40
    assert recorder.events == [
        "estimator_run_hooks infer",
        "estimator_run_start infer",
        "begin",
        "after_create",
        "before_step",
        "after_step",
        "end",
        "estimator_run_end infer None",
    ]


def test_export(estimator, recorder, tmp_path):
    estimator.train(tiny_input_fn(), steps=2)
    recorder.events.clear()
    path = estimator.export_saved_model(str(tmp_path / "exports"), tiny_receiver_fn, format="arrays")
    assert recorder.events == ["estimator_export_written arrays"]
    assert recorder.path == path


def test_the_manifest_names_the_plugins(estimator):
    from estimator_core._checkpoint.read import read_checkpoint

    estimator.train(tiny_input_fn(), steps=1)
    assert estimator.latest_checkpoint()
    manifest = read_checkpoint(estimator.latest_checkpoint(), items=()).manifest
    assert ("estimator-core", "0.1.0") in [(row["distribution"], row["version"]) for row in manifest["plugins"]]


def test_the_manifest_of_an_export_names_them_too(estimator, recorder, tmp_path):
    from estimator_core.export import load

    estimator.train(tiny_input_fn(), steps=1)
    path = estimator.export_saved_model(str(tmp_path / "exports"), tiny_receiver_fn, format="arrays")
    reader = Plugins(autoload=False, extra=[array_format], environ={})
    rows = load(path, plugins=reader).manifest["provenance"]["plugins"]
    (core,) = (row for row in rows if row["distribution"] == "estimator-core")
    assert core["version"] == metadata.version("estimator-core")
    assert all(row["hash"].startswith("sha256:") for row in rows)
    assert f"code:{type(recorder).__name__}" in [row["distribution"] for row in rows]
