"""Every export has a model card with the figures of its run."""

import json
from pathlib import Path

import numpy as np

import estimator_core as ec
from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_exporters.bundle.card import card_of, evaluations_of
from plugins.exporters.tests.small_model import input_fn, receiver_fn, trained


def test_inputs_data_metrics_and_versions_of_an_export(tmp_path):
    estimator = trained(tmp_path / "model")
    before = Path(estimator.export_saved_model(str(tmp_path / "before"), receiver_fn), "MODEL_CARD.md").read_text()
    assert "No evaluation of step 2 was recorded." in before
    loss = estimator.evaluate(input_fn(), name="test")["loss"]
    export = Path(estimator.export_saved_model(str(tmp_path / "export"), receiver_fn))
    card = (export / "MODEL_CARD.md").read_text()
    lines = card.splitlines()
    assert "Step 2, in the format stablehlo, with 20 parameters." in lines
    assert "| input | x | float32 | any x 3 |" in lines
    assert "| output | logits | float32 | any x 2 |" in lines
    assert f"| eval\\_test | loss | {float(loss)} |" in lines
    assert f"| estimator-core | {ec.__version__} |" in lines
    assert "MODEL_CARD.md" in json.loads((export / "manifest.json").read_text())["files"]


def test_the_metrics_are_those_of_the_step_that_is_exported(tmp_path):
    estimator = trained(tmp_path / "model")
    old = estimator.latest_checkpoint()
    estimator.evaluate(input_fn())
    estimator.train(input_fn(), steps=2)
    export = Path(estimator.export_saved_model(str(tmp_path / "new"), receiver_fn))
    assert "No evaluation of step 4 was recorded." in (export / "MODEL_CARD.md").read_text()
    export = Path(estimator.export_saved_model(str(tmp_path / "old"), receiver_fn, checkpoint_path=old))
    assert "Of step 2:" in (export / "MODEL_CARD.md").read_text()


def test_a_file_that_is_named_like_an_evaluation_is_none(tmp_path):
    """A command writes `eval_results.txt` into the model_dir before it exports."""
    estimator = trained(tmp_path / "model")
    (tmp_path / "model" / "eval_results.txt").write_text("loss = 1")
    export = Path(estimator.export_saved_model(str(tmp_path / "export"), receiver_fn))
    assert "MODEL_CARD.md" in json.loads((export / "manifest.json").read_text())["files"]


def test_names_of_inputs_and_classes_stay_within_their_cells():
    signature = SignatureSpec(
        name="serving_default",
        method="classify",
        inputs={"a|b\n# head": Feature((None,), "int32")},
        outputs={"<script>": Feature((None,))},
        function=lambda variables, inputs: {},
        class_names=["[x](http://y)", "cat"],
    )
    seen = {"training_saw": {"tags": {"places": 4, "dtype": "string"}}}
    request = ExportRequest(
        signatures={"s": signature}, variables={"w": np.zeros((2, 3))}, global_step=1, provenance=seen
    )
    lines = card_of(request, "stablehlo").splitlines()
    assert "Step 1, in the format stablehlo, with 6 parameters." in lines
    assert "| tags | string | 4 |" in lines
    assert "| input | a\\|b # head | int32 | any |" in lines
    assert "| output | \\<script> | float32 | any |" in lines
    assert "Classes: \\[x](http://y), cat" in lines


def test_a_checkpoint_that_is_no_path_has_no_evaluations(tmp_path):
    assert evaluations_of(None, 1) == {}
    assert evaluations_of(str(tmp_path / "checkpoints" / "1"), 1) == {}
