"""Tests of the exporters of estimator-exporters on the evaluations that tf.estimator's own exporters received."""

import os
from pathlib import Path

import numpy as np
import pytest

from estimator_core._summaries.eval_metrics import append_eval_metrics
from tests.parity import data

exporters = pytest.importorskip("estimator_exporters", reason="estimator-exporters is not installed")
pytestmark = pytest.mark.plugins

CASES = data.load("exporters")
SEQUENCES = {name: case for name, case in CASES.items() if "seen" in case}
FIRST = 1_700_000_000

#: Deliberate differences of BestExporter: a name, the reason, and the cases that may differ.
DIFFERENCES = {
    "the_best_on_record_counts": (
        "what was evaluated before counts; there the first evaluation of an exporter always is exported",
        lambda case: bool(case.get("recorded")) or any(item.get("restart") for item in case["evaluations"]),
    ),
    "any_number_beats_nan": (
        "there nothing is better than NaN",
        lambda case: any(isinstance(_loss(item), str) for item in case["evaluations"]),
    ),
    "what_cannot_be_compared_is_refused": (
        "a result without loss is refused at once; there the first one is exported",
        lambda case: any(_loss(item) is None for item in case["evaluations"] if not item.get("restart")),
    ),
}


def _loss(evaluation):
    return (evaluation.get("result") or {}).get("loss")


def expected_of(case):
    """Returns the expected exports.

    BestExporter must be "better than all before", and the others match the recording.
    """
    if case["exporter"] != "BestExporter" or "compare_fn" in case["arguments"]:
        return case["seen"]
    in_eval_dir = case.get("eval_dir", "eval") == "eval"
    best = min(
        (float(np.float32(metrics["loss"])) for _, metrics in case.get("recorded", ()) if in_eval_dir), default=np.nan
    )
    kept, made, expected = list(case.get("present", ())), 0, []
    for evaluation in case["evaluations"]:
        loss, returned, error = _loss(evaluation), None, None
        if loss is None and not evaluation.get("restart"):
            error = {"type": "ValueError"}
        elif loss is not None and (float(loss) < best or (np.isnan(best) and (not np.isnan(float(loss)) or not made))):
            best, returned, made = float(loss), str(FIRST + made), made + 1
            exports = sorted([*(name for name in kept if name.isdigit() and len(name) == 10), returned])
            gone = (
                exports[: -case["arguments"].get("exports_to_keep", 5)]
                if case["arguments"].get("exports_to_keep", 5)
                else []
            )
            kept = [name for name in [*kept, returned] if name not in gone]
        expected.append({"returned": returned, "kept": sorted(kept), "error": error})
    return expected


class Stand:
    """Stands in for an Estimator, with a model_dir and export directories whose time stamps are one second apart."""

    def __init__(self, model_dir):
        self.model_dir = str(model_dir)
        self.exported = 0

    def eval_dir(self, name=None):
        return str(Path(self.model_dir) / (f"eval_{name}" if name else "eval"))

    def export_saved_model(self, export_dir_base, serving_input_receiver_fn, **options):
        path = Path(export_dir_base) / str(FIRST + self.exported)
        self.exported += 1
        path.mkdir(parents=True)
        return str(path)


def higher_accuracy(best_eval_result, current_eval_result):
    return current_eval_result["accuracy"] > best_eval_result["accuracy"]


def number(value):
    return float(value) if isinstance(value, str) else value


def make(case):
    arguments = dict(case["arguments"])
    if "compare_fn" in arguments:
        arguments["compare_fn"] = higher_accuracy
    return getattr(exporters, case["exporter"])("made", serving_input_receiver_fn=lambda: None, **arguments)


def run(case, model_dir):
    """Returns the result of each export of the case, and the exports that were kept after it."""
    export_path = model_dir / "export" / "made"
    for name in case.get("present", ()):
        (export_path / name).mkdir(parents=True)
    export_path.mkdir(parents=True, exist_ok=True)
    eval_dir = model_dir / case.get("eval_dir", "eval")
    for step, metrics in case.get("recorded", ()):
        append_eval_metrics(eval_dir, step, {key: np.float32(number(value)) for key, value in metrics.items()}, None)
    estimator, exporter, seen = Stand(model_dir), make(case), []
    for index, evaluation in enumerate(case["evaluations"]):
        returned = error = None
        if evaluation.get("restart"):
            exporter = make(case)
        else:
            result = evaluation["result"]
            result = result and {key: number(value) for key, value in result.items()}
            if result and case.get("write_each"):
                metrics = {key: value for key, value in result.items() if key != "global_step"}
                append_eval_metrics(eval_dir, result["global_step"], metrics, None)
            try:
                returned = exporter.export(
                    estimator, str(export_path), f"checkpoint-{index}", result, evaluation["final"]
                )
            except Exception as raised:
                error = [kind.__name__ for kind in type(raised).__mro__]
        kept = sorted(name for name in os.listdir(export_path) if not name.endswith(".json"))
        seen.append({"returned": returned and Path(returned).name, "kept": kept, "error": error})
    return seen


def same(recorded, seen):
    """Returns whether an export did the same as the recorded one. A restart returns nothing."""
    refused = recorded.get("error")
    return (
        recorded.get("returned") == seen["returned"]
        and recorded["kept"] == seen["kept"]
        and (refused is None) == (seen["error"] is None)
        and (refused is None or refused["type"] in seen["error"])
    )


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence(name, tmp_path):
    case = SEQUENCES[name]
    seen = run(case, tmp_path)
    assert [same(expected, found) for expected, found in zip(expected_of(case), seen, strict=True)] == [True] * len(
        seen
    )


def plain(steps):
    return [(step.get("returned"), step["kept"], bool(step.get("error"))) for step in steps]


@pytest.mark.parametrize("name", SEQUENCES)
def test_expected_is_what_was_recorded_but_for_named_differences(name):
    case = SEQUENCES[name]
    if not any(may_differ(case) for _, may_differ in DIFFERENCES.values()):
        assert plain(expected_of(case)) == plain(case["seen"])


def test_each_difference_is_one():
    for _, may_differ in DIFFERENCES.values():
        differing = [case for case in SEQUENCES.values() if plain(expected_of(case)) != plain(case["seen"])]
        assert any(may_differ(case) for case in differing)


def wrong_name(best_result, current_eval_result):
    return True


@pytest.mark.parametrize("name", [name for name in CASES if "seen" not in CASES[name]])
def test_refused_arguments(name):
    case = CASES[name]
    arguments = {key: wrong_name if value == "wrong_name" else value for key, value in case["arguments"].items()}
    with pytest.raises((ValueError, TypeError), match=r"compare_fn|exports_to_keep"):
        getattr(exporters, case["exporter"])("made", lambda: None, **arguments)
