"""The exporters against those of tf.estimator 2.15.1: what they export and keep in recorded courses of evaluations."""

import itertools
import json
import math
from pathlib import Path

import pytest

pytestmark = pytest.mark.plugins

RECORDED = Path(__file__).parents[1] / "parity" / "recorded" / "exporters.json"
CASES = json.loads(RECORDED.read_text())["cases"]
COURSES = {name: case for name, case in CASES.items() if "seen" in case}
#: Results without the metric that is compared are refused at the first evaluation, not at the second.
REFUSED = {"best_no_loss", "best_empty_result", "best_none_result"}


def differs(case):
    """Known faults of the original: it forgets the best over a restart, and NaN as first result bars all others."""
    losses = [(one.get("result") or {}).get("loss") for one in case["evaluations"]]
    return case["exporter"] == "BestExporter" and (
        "recorded" in case or any("restart" in one for one in case["evaluations"]) or losses[0] == "nan"
    )


def better(case, best, current):
    if case["arguments"].get("compare_fn") == "higher_accuracy":
        return current["accuracy"] > best["accuracy"]
    return current["loss"] < best["loss"] or (math.isnan(best["loss"]) and not math.isnan(current["loss"]))


def numbers(result):
    return {name: float(value) if value == "nan" else value for name, value in (result or {}).items()}


def make(case):
    import estimator_exporters

    arguments = dict(case["arguments"])
    if arguments.get("compare_fn") == "higher_accuracy":
        arguments["compare_fn"] = lambda best_eval_result, current_eval_result: (
            current_eval_result["accuracy"] > best_eval_result["accuracy"]
        )
    exporter = getattr(estimator_exporters, case["exporter"])("made", lambda: None, **arguments)
    if case["exporter"] == "BestExporter":
        exporter.used_in(case.get("eval_dir", "eval").removeprefix("eval").removeprefix("_") or None)
    return exporter


class Stand:
    """Stands for an Estimator, as in the recording: makes the directory that a real one would make."""

    def __init__(self, model_dir):
        self.model_dir = model_dir
        self.stamps = itertools.count(1_700_000_000)

    def export_saved_model(self, export_dir_base, serving_input_receiver_fn, **options):
        path = Path(export_dir_base) / str(next(self.stamps))
        path.mkdir(parents=True)
        return str(path)

    def eval_dir(self, name=None):
        return str(self.model_dir / ("eval" if name is None else f"eval_{name}"))


def write_record(directory, step, metrics):
    Path(directory).mkdir(parents=True, exist_ok=True)
    with Path(directory, "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"global_step": step, "metrics": metrics, "wall_time": 0.0}) + "\n")


def played(case, tmp_path):
    """What our exporter returns and keeps, evaluation by evaluation, in the form of the recording."""
    export_path = tmp_path / "export" / "made"
    export_path.mkdir(parents=True)
    for name in case.get("present", ()):
        (export_path / name).mkdir()
    eval_dir = tmp_path / case.get("eval_dir", "eval")
    for step, metrics in case.get("recorded") or ():
        write_record(eval_dir, step, metrics)
    estimator, exporter, seen = Stand(tmp_path), make(case), []
    for number, evaluation in enumerate(case["evaluations"]):
        if evaluation.get("restart"):
            exporter = make(case)
            continue
        result = numbers(evaluation["result"])
        if result and case.get("write_each"):
            write_record(eval_dir, result["global_step"], {k: v for k, v in result.items() if k != "global_step"})
        path = exporter.export(estimator, str(export_path), f"checkpoints/{number}", result, evaluation["final"])
        kept = sorted(path.name for path in export_path.iterdir() if path.is_dir())
        seen.append((Path(path).name if path else None, kept))
    return seen


def truly_best(case):
    """Whether each evaluation is exported if the best is never forgotten."""
    best, exported = None, []
    for step, metrics in case.get("recorded") or ():
        known = {**metrics, "global_step": step}
        if ("accuracy" in known or "compare_fn" not in case["arguments"]) and (
            best is None or better(case, best, known)
        ):
            best = known
    for evaluation in case["evaluations"]:
        if evaluation.get("restart"):
            continue
        result = numbers(evaluation["result"])
        exported.append(best is None or better(case, best, result))
        if exported[-1]:
            best = result
    return exported


@pytest.mark.parametrize("name", sorted(name for name in COURSES if name not in REFUSED and not differs(COURSES[name])))
def test_as_recorded(name, tmp_path):
    recorded = [(one["returned"], one["kept"]) for one in COURSES[name]["seen"] if "returned" in one]
    assert played(COURSES[name], tmp_path) == recorded


@pytest.mark.parametrize("name", sorted(name for name in COURSES if name not in REFUSED and differs(COURSES[name])))
def test_better_than_recorded_where_the_original_forgets_the_best(name, tmp_path):
    case = COURSES[name]
    assert [path is not None for path, _ in played(case, tmp_path)] == truly_best(case)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_results_that_cannot_be_compared_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match="cannot be empty or no loss is found in it"):
        played(COURSES[name], tmp_path)


@pytest.mark.parametrize("name", sorted(name for name in CASES if "seen" not in CASES[name]))
def test_refusals(name):
    case = CASES[name]
    if case["arguments"].get("compare_fn") == "wrong_name":
        case = {**case, "arguments": {"compare_fn": lambda wrong_name: True}}
    with pytest.raises((ValueError, TypeError)):
        make(case)
