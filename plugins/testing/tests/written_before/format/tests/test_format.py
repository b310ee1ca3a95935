"""The format keeps its contract, and carries a trained model."""

import numpy as np

import estimator_core as ec
from estimator_core.export.loading import load
from estimator_core.testing.export_format_suite import ExportFormatSuite
from estimator_core.testing.tiny import tiny_estimator, tiny_input_fn, tiny_receiver_fn


class TestAcmeFormatFormat(ExportFormatSuite):
    def make(self):
        return ec.Plugins().get("format", "acme_format")()


def test_takes_part_in_a_run(tmp_path):
    estimator = tiny_estimator(tmp_path / "model").train(tiny_input_fn(), steps=30)
    path = estimator.export_saved_model(str(tmp_path / "exports"), tiny_receiver_fn, format="acme_format")
    loaded = load(path)
    x = np.array([[0.25], [0.5], [1.0]], np.float32)
    (outputs,) = (signature(x=x) for signature in loaded.signatures.values())
    expected = [prediction["y"] for prediction in estimator.predict(lambda: [{"x": x}])]
    np.testing.assert_allclose(outputs["y"], expected, rtol=1e-5)
