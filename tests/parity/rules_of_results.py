"""Deliberate differences in saved, written and returned values, and in refusals."""

import copy

from tests.parity.rules import ANY, each_call, rule
from tests.parity.rules_of_traces import names
from tests.parity.traces import cast, phase


@rule("Metrics of the spec are summaries of the training too; their values are not compared")
def metrics_in_training(recording, name, scenario, expected, cases):
    if any(call.get("params", scenario.get("params", {})).get("no_metrics") for call in scenario["calls"]):
        return
    for folder, events in expected["events"].items():
        if folder == ".":
            with_metrics = []
            for step, tag, value in events:
                with_metrics.append([step, tag, value])
                if tag == "loss":
                    with_metrics += [[step, "mae", None], [step, "label_mean", None]]
            expected["events"][folder] = with_metrics


@rule("A listener can stop the run at its first save too")
def the_first_save_can_stop(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        if 1 not in [listener.get("stop_at_save") for listener in call.get("listeners", ())]:
            continue
        who, trace = cast(scenario, call), result["trace"]
        steps = [index for index, line in enumerate(trace) if phase(line) == "before_run"]
        saves = [index for index, line in enumerate(trace) if phase(line) == "after_save"][: len(who.listeners)]
        created = trace[: steps[0] if steps else saves[-1] + 1]
        result["trace"] = created + [f"{name}.end(0)" for name in (*who.listeners, *who.hooks)]
        result.update(saves=[0], checkpoints=[0], latest_checkpoint=0)
        expected.update(events={}, weights={"w": [[0.5], [-0.25]], "b": [0.125], "global_step": 0})


@rule("A save at which a listener stops the run is repeated: its checkpoint says that it is the last one")
def a_stop_of_a_listener_is_saved(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        stops = [listener["stop_at_save"] for listener in call.get("listeners", ()) if "stop_at_save" in listener]
        if stops and len(result["saves"]) >= min(stops):
            result["saves"] = [*result["saves"], result["saves"][-1]]


@rule("However training ended, its last step is exported as the final one")
def the_end_is_final(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        exports = [line for line in result["trace"] if phase(line) == "export"]
        if call["call"] != "train_and_evaluate" or result["error"] or not exports or "final=True" in exports[-1]:
            continue
        count = len(call.get("exporters", ()))
        result["trace"] = result["trace"] + [line.replace("final=False", "final=True") for line in exports[-count:]]


@rule("A run that is finished already is evaluated and exported once more")
def a_finished_run_is_evaluated(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        if call["call"] != "train_and_evaluate" or result["returned"] != [None, None]:
            continue
        step = result["latest_checkpoint"]
        reached = next(case for case in cases.values() if _metrics_at(case, step))
        metrics = _metrics_at(reached, step)
        exporters = names(call.get("exporters"))
        result["returned"] = [metrics, [f"{exporter}@{step}" for exporter in exporters]]
        result["trace"] = ["evaluate.input_fn"] + [
            f"{exporter}.export({step}, final=True, export/{exporter})" for exporter in exporters
        ]
        folder = "eval_" + call["eval_name"] if "eval_name" in call else "eval"
        events = expected["events"].setdefault(folder, [])
        events += [[step, tag, value] for tag, value in metrics.items() if tag != "global_step"]


def _metrics_at(case, step):
    """Returns the result of a recorded uninterrupted train_and_evaluate at a step, with the whole evaluation input."""
    first = case["results"][0] if len(case["calls"]) else None
    plain = case["calls"][0]["call"] == "train_and_evaluate" and "eval_input" not in case["calls"][0]
    if plain and first["returned"] and first["returned"][0] and first["returned"][0]["global_step"] == step:
        return first["returned"][0]
    return None


@rule("An empty evaluation has no metrics: an error, after the save")
def an_empty_evaluation_is_an_error(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        inputs = {"evaluate": call.get("input"), "train_and_evaluate": call.get("eval_input")}.get(call["call"])
        if inputs and inputs.get("rows") == 0:
            result.update(returned=None, error={"type": "InputError", "message": "the input is empty"})
            result["trace"] = [line for line in result["trace"] if phase(line) != "export"]
            expected["events"].pop("eval", None)


@rule("NaN is noticed without waiting for the device, by the next save or the end, and never saved")
def nan_is_noticed_later(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        if call["call"].startswith("train") and "nan_row" in call.get("input", {}):
            result.update(trace=ANY, saves=ANY, checkpoints=[0], latest_checkpoint=0)
            expected.update(events=ANY, weights={"w": [[0.5], [-0.25]], "b": [0.125], "global_step": 0})


@rule("Arguments are refused before input_fn is called")
def refused_before_input_fn(recording, name, scenario, expected, cases):
    for result in expected["results"]:
        if result["error"] and "CheckpointSaverHook" in result["error"]["message"]:
            result["trace"] = []


@rule("The checkpoint_path of an evaluation inside training is not compared: there the save came first")
def live_evaluations_come_before_their_checkpoint(recording, name, scenario, expected, cases):
    if any(call["call"] == "train_and_evaluate" for call in scenario["calls"]) and expected["events"] != ANY:
        for folder, events in expected["events"].items():
            expected["events"][folder] = [event for event in events if event[1] != "checkpoint_path"]


@rule("A call that was interrupted goes on with its cadence: its first step is not written to the event file")
def an_interrupted_call_keeps_its_cadence(recording, name, scenario, expected, cases):
    for index, result in enumerate(expected["results"][:-1]):
        if result["error"] and result["saves"] != ANY and len(result["saves"]) > 1:
            first = expected["results"][index]["latest_checkpoint"] + 1
            expected["events"]["."] = [event for event in expected["events"]["."] if event[0] != first]


@rule("Lowering keep_checkpoint_max removes the whole backlog, not one checkpoint a save")
def lowering_the_limit_removes_the_backlog(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        limit = call.get("config", {}).get("keep_checkpoint_max")
        if limit and len(result["checkpoints"]) > limit:
            result["checkpoints"] = result["checkpoints"][-limit:]


@rule("StopAtStepHook makes no step when its step is reached already; tf.estimator makes one more")
def stop_at_a_reached_step(recording, name, scenario, expected, cases):
    if name != "stop_at_step_hook_reached":
        return
    before, result = expected["results"]
    result.update(saves=[], checkpoints=before["checkpoints"], latest_checkpoint=before["latest_checkpoint"])
    expected["events"]["."] = [event for event in expected["events"]["."] if event[0] <= before["latest_checkpoint"]]
    expected["weights"] = cases["input_empty_after_training"]["weights"]  # trained to the same step


@rule("Each of predict_keys must exist; one unknown is refused as all unknown are")
def unknown_predict_keys_are_refused(recording, name, scenario, expected, cases):
    if name == "predict_some_keys_unknown":
        expected["results"][1] = copy.deepcopy(cases["predict_all_keys_unknown"]["results"][1])


@rule("predict_keys is a list; a string is refused, which tf.estimator takes for the set of its letters")
def predict_keys_is_a_list(recording, name, scenario, expected, cases):
    if name == "predict_key_as_string":
        expected["results"][1].update(returned=[], trace=[], error={"type": "TypeError", "message": ""})


@rule("Event files hold no session log but where a run resumes")
def no_session_logs(recording, name, scenario, expected, cases):
    for result in expected["results"]:
        if result["trace"] != ANY:
            result["trace"] = [line for line in result["trace"] if not line.startswith("SummarySaverHook.session")]


@rule("LoggingTensorHook(at_end=True) logs the last values once, also where the last step was logged just before")
def the_last_values_are_logged_once(recording, name, scenario, expected, cases):
    for result in expected["results"]:
        trace = result["trace"]
        for index in range(len(trace) - 3, -1, -1) if trace != ANY else ():
            line, after, again = trace[index : index + 3]
            if line.startswith("log(") and phase(after) == "after_run" and again == line:
                result["trace"] = trace[: index + 2] + trace[index + 3 :]
                break


@rule("A call that begins anew takes the points of the one before out of the event files: each is there once")
def points_of_a_beginning_that_was_given_up_go(recording, name, scenario, expected, cases):
    if (recording, name) == ("training", "never_saved_twice"):
        for folder, events in expected["events"].items():
            last = {(step, tag): value for step, tag, value in events}
            expected["events"][folder] = [[step, tag, value] for (step, tag), value in last.items()]
