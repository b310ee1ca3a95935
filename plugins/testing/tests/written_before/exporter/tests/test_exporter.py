"""The exporter keeps its contract, and exports from a training."""

import estimator_core as ec
from estimator_core.testing import array_format, tiny_estimator
from estimator_core.testing.exporter_suite import ExporterSuite
from estimator_core.testing.tiny import tiny_input_fn, tiny_receiver_fn


def make(**arguments):
    return ec.Plugins().get("exporter", "acme_exporter")(tiny_receiver_fn, **arguments)


class TestAcmeExporterExporter(ExporterSuite):
    def make(self):
        return make()


def exports(model_dir, goal):
    # A format of the test kit, so that this package can be tested with estimator-core alone.
    estimator = tiny_estimator(model_dir, plugins=ec.Plugins(extra=[array_format]))
    exporter = make(goal=goal, export_format="arrays")
    train = ec.TrainSpec(tiny_input_fn(), max_steps=20)
    ec.train_and_evaluate(estimator, train, ec.EvalSpec(tiny_input_fn(epochs=1), exporters=exporter))
    return list((model_dir / "export").rglob("arrays.json"))


def test_takes_part_in_a_run(tmp_path):
    assert len(exports(tmp_path / "easy", goal=1e9)) >= 1
    assert exports(tmp_path / "hard", goal=-1.0) == []
