"""Every canned tabular model can be exported as ONNX. Each output of each signature equals the estimator's."""

import functools
import tempfile

import numpy as np
import pytest

import estimator_core as ec
from plugins.exporters.tests.separate.tabular_models import FEATURES, MODELS, receiver, trained

CLASSIFIED = ["logits", "probabilities", "class_ids", "classes", "all_class_ids", "all_classes"]
BINARY = [*CLASSIFIED, "logistic"]
NUMBERS = {"predict": ["predictions"], "regression": ["outputs"]}
CLUSTERS = {"all_distances": ["all_distances"], "cluster_index": ["cluster_index"]}
SCORES = ["scores", "classes"]


def outputs_of(name):
    """The outputs of a model by signature."""
    if "regressor" in name or name == "rnn_simple":
        return NUMBERS
    if "names" in name:
        return {"predict": CLASSIFIED, "classification": SCORES}
    return CLUSTERS if "kmeans" in name else {"predict": BINARY, "classification": SCORES, "regression": ["outputs"]}


OUTPUTS = {name: outputs_of(name) for name in MODELS}
CASES = [
    (name, signature, output)
    for name, signatures in OUTPUTS.items()
    for signature, outputs in signatures.items()
    for output in outputs
]


@functools.cache
def answers(name):
    """The outputs of an ONNX export and of a StableHLO export, by signature, and the predictions of the estimator."""
    estimator = trained(name)
    found, expected = (
        {
            signature: function(**FEATURES)
            for signature, function in ec.export.load(
                estimator.export_saved_model(tempfile.mkdtemp(), receiver(), format=format_name)
            ).raw_signatures.items()
        }
        for format_name in ("onnx", "stablehlo")
    )
    return found, expected, list(estimator.predict(lambda: [FEATURES]))


@pytest.mark.parametrize(("name", "signature", "output"), CASES)
def test_outputs(name, signature, output):
    found, expected, predicted = answers(name)
    assert set(found) == set(expected)
    assert set(found[signature]) == set(expected[signature])
    same(found[signature][output], expected[signature][output])
    if signature == "predict":
        same(found[signature][output], np.stack([row[output] for row in predicted]))


def test_every_output_is_a_case():
    for name, signatures in OUTPUTS.items():
        found, _, _ = answers(name)
        assert set(found) == {*signatures, "serving_default"}
        assert {signature: set(found[signature]) for signature in signatures} == {
            signature: set(outputs) for signature, outputs in signatures.items()
        }


def same(found, expected):
    assert found.shape == expected.shape
    if found.dtype.kind in "OSU":
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
