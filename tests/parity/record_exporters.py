"""Records which evaluations Best-, Latest- and FinalExporter export, what they return and which exports they keep.

The exporters are tf.estimator's own; the estimator given to them only makes the directory that a real one would make.
"""

import os
import pathlib
import tempfile

import numpy as np
from record_early_stopping import write_evaluations
from tf_recording import SEED, described, error_of, tf, write

FIRST = 1_700_000_000


class Stand:
    """Stands for an Estimator: has a model_dir, makes time-stamped export directories one second apart."""

    def __init__(self, model_dir):
        self.model_dir = model_dir
        self.exported = 0

    def export_saved_model(self, export_dir_base, serving_input_receiver_fn, **options):
        path = os.path.join(export_dir_base, str(FIRST + self.exported))
        self.exported += 1
        os.makedirs(path)
        return path.encode()


def higher_accuracy(best_eval_result, current_eval_result):
    return current_eval_result["accuracy"] > best_eval_result["accuracy"]


def receiver():
    return None


COMPARE = {"higher_accuracy": higher_accuracy}


def make(kind, arguments):
    arguments = dict(arguments)
    if "compare_fn" in arguments:
        arguments["compare_fn"] = COMPARE[arguments["compare_fn"]]
    return getattr(tf.estimator, kind)("made", serving_input_receiver_fn=receiver, **arguments)


def sequence(case):
    """Exports after each evaluation of the case; ``{"restart": true}`` makes a new exporter on the same model_dir."""
    model_dir = tempfile.mkdtemp()
    export_path = os.path.join(model_dir, "export", "made")
    os.makedirs(export_path)
    for name in case.get("present", ()):
        os.makedirs(os.path.join(export_path, name))
    eval_dir = os.path.join(model_dir, case.get("eval_dir", "eval"))
    if case.get("recorded"):
        write_evaluations(eval_dir, case["recorded"])
    estimator, exporter, seen = Stand(model_dir), make(case["exporter"], case["arguments"]), []
    for evaluation in case["evaluations"]:
        if evaluation.get("restart"):
            exporter = make(case["exporter"], case["arguments"])
            seen.append({"kept": sorted(os.listdir(export_path))})
            continue
        result = evaluation["result"]
        if result and case.get("write_each"):
            write_evaluations(
                eval_dir, [(result["global_step"], {k: v for k, v in result.items() if k != "global_step"})]
            )
        returned = error = None
        try:
            returned = exporter.export(estimator, export_path, "checkpoint", result, evaluation["final"])
        except Exception as raised:
            error = described(raised)
        name = pathlib.Path(returned.decode()).name if returned else None
        seen.append({"returned": name, "kept": sorted(os.listdir(export_path)), "error": error})
    return {**case, "seen": seen}


def evaluations(losses, final_at_end=True, **more):
    """One evaluation a loss at steps 10, 20, ...; None stands for a restart."""
    made, step = [], 0
    for loss in losses:
        if loss is None:
            made.append({"restart": True})
            continue
        step += 10
        made.append({"result": {"loss": loss, "global_step": step, **more}, "final": False})
    if final_at_end:
        made[-1]["final"] = True
    return made


def best(losses, recorded=None, arguments=None, **more):
    case = {"exporter": "BestExporter", "arguments": arguments or {}, "evaluations": evaluations(losses), **more}
    return case if recorded is None else {**case, "recorded": recorded}


LOSSES = [[(1000, {"loss": 50.0})], [(1000, {"loss": 50.0}), (2000, {"loss": 60.0})]]
ODD_NAMES = ["1600000001", "1600000002", "1600000003", "160000000", "16000000044", "temp-1600000005", "notes"]
BEST = {
    "falling": best([5.0, 4.0, 3.0]),
    "rising": best([3.0, 4.0, 5.0]),
    "equal": best([3.0, 3.0, 3.0]),
    "mixed": best([5.0, 6.0, 4.0, 4.5, 4.0, 1.0]),
    "nan_first": best([float("nan"), 4.0, 5.0]),
    "nan_later": best([4.0, float("nan"), 3.0]),
    "events_better": best([100.0, 10.0, 20.0], LOSSES[1]),
    "events_worse": best([10.0, 100.0, 5.0], LOSSES[0]),
    "events_equal": best([50.0, 50.0, 49.0], LOSSES[0]),
    "events_of_named_evaluation": best([100.0, 10.0, 20.0], LOSSES[1], eval_dir="eval_val"),
    "events_of_named_evaluation_by_pattern": best(
        [100.0, 10.0, 20.0], LOSSES[1], {"event_file_pattern": "eval_val/*.tfevents.*"}, eval_dir="eval_val"
    ),
    "no_event_pattern": best([100.0, 10.0, 20.0], LOSSES[1], {"event_file_pattern": None}),
    "restart": best([5.0, 4.0, None, 9.0, 4.5, 3.0], write_each=True),
    "restart_without_events": best([5.0, 4.0, None, 9.0, 4.5, 3.0]),
    "restart_without_pattern": best([5.0, 4.0, None, 9.0, 3.0], None, {"event_file_pattern": None}, write_each=True),
    "restart_better": best([5.0, 4.0, None, 3.0, 3.5], write_each=True),
    "keep_1": best([5.0, 4.0, 3.0], None, {"exports_to_keep": 1}),
    "keep_2": best([5.0, 4.0, 3.0, 2.0, 2.5], None, {"exports_to_keep": 2}),
    "keep_all": best([7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], None, {"exports_to_keep": None}),
    "keep_default": best([7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]),
    "other_names_present": best([5.0, 4.0], None, {"exports_to_keep": 2}, present=ODD_NAMES),
    "no_loss": {**best([1.0]), "evaluations": [{"result": {"accuracy": 1.0, "global_step": 1}, "final": False}] * 2},
    "empty_result": {**best([1.0]), "evaluations": [{"result": {}, "final": False}] * 2},
    "none_result": {**best([1.0]), "evaluations": [{"result": None, "final": False}] * 2},
    "custom_metric": {
        **best([1.0], None, {"compare_fn": "higher_accuracy"}),
        "evaluations": [
            {"result": {"loss": 1.0, "accuracy": accuracy, "global_step": step}, "final": False}
            for step, accuracy in enumerate([0.5, 0.4, 0.6, 0.6, 0.7])
        ],
    },
    "custom_metric_not_in_events": {
        **best([1.0], LOSSES[0], {"compare_fn": "higher_accuracy"}),
        "evaluations": [{"result": {"loss": 1.0, "accuracy": 0.5, "global_step": 1}, "final": False}] * 2,
    },
}


def other(kind, count, keep=5, final=(), **more):
    made = evaluations([1.0] * count, final_at_end=False)
    for index in final:
        made[index]["final"] = True
    arguments = {} if kind == "FinalExporter" else {"exports_to_keep": keep}
    return {"exporter": kind, "arguments": arguments, "evaluations": made, **more}


OTHERS = {
    **{f"latest_keep_{keep}": other("LatestExporter", 7, keep) for keep in (1, 2, 3, 5, 10, None)},
    "latest_final": other("LatestExporter", 3, final=[2]),
    "latest_other_names_present": other("LatestExporter", 2, 2, present=ODD_NAMES),
    "latest_many_present": other("LatestExporter", 1, 2, present=[str(1_600_000_000 + n) for n in range(6)]),
    "latest_newer_present": other("LatestExporter", 2, 2, present=["1800000001", "1800000002"]),
    "final_at_end": other("FinalExporter", 3, final=[2]),
    "final_never": other("FinalExporter", 3),
    "final_twice": other("FinalExporter", 3, final=[1, 2]),
    "final_first": other("FinalExporter", 3, final=[0]),
}


def random_best(rng):
    losses = [round(float(loss), 1) for loss in rng.uniform(0, 5, int(rng.integers(2, 12)))]
    if rng.random() < 0.4:
        losses.insert(int(rng.integers(1, len(losses))), None)
    recorded = None
    if rng.random() < 0.4:
        steps = range(int(rng.integers(1, 5)))
        recorded = [(step, {"loss": round(float(rng.uniform(0, 5)), 1)}) for step in steps]
    arguments = {"exports_to_keep": [1, 2, 3, 5, None][rng.integers(5)]}
    return best(losses, recorded, arguments, write_each=bool(rng.random() < 0.5))


def wrong_name(best_result, current_eval_result):
    return True


REFUSED = {
    "best_compare_fn_argument": ("BestExporter", {"compare_fn": wrong_name}),
    "best_compare_fn_not_callable": ("BestExporter", {"compare_fn": None}),
    "best_keep_0": ("BestExporter", {"exports_to_keep": 0}),
    "best_keep_negative": ("BestExporter", {"exports_to_keep": -1}),
    "latest_keep_0": ("LatestExporter", {"exports_to_keep": 0}),
    "latest_keep_negative": ("LatestExporter", {"exports_to_keep": -1}),
}


def main():
    rng = np.random.default_rng(SEED)
    given = {f"best_{name}": case for name, case in BEST.items()} | OTHERS
    given |= {f"best_random_{index:02}": random_best(rng) for index in range(60)}
    cases = {name: sequence(case) for name, case in given.items()}
    for name, (kind, arguments) in REFUSED.items():
        error = error_of(getattr(tf.estimator, kind), "made", receiver, **arguments)
        shown = {key: getattr(value, "__name__", value) for key, value in arguments.items()}
        cases[f"refused_{name}"] = {"exporter": kind, "arguments": shown, "error": error}
    helpers = ("record_early_stopping.py", "tf_scenario.py", "tf_tracers.py")
    write(__file__, cases, helpers=helpers)


if __name__ == "__main__":
    main()
