"""Deliberate differences in the calls and in their order."""

import copy
import re

from tests.parity.rules import each_call, rule
from tests.parity.traces import cast, owner, phase, save_blocks, steps_made, unmatched_before_run, without


@rule("throttle_secs is 0 unless given, not 600: every checkpoint is evaluated")
def every_checkpoint_is_evaluated(recording, name, scenario, expected, cases):
    if name == "throttled_default":
        twin = cases["reference_no_exporters"]
        expected.update(copy.deepcopy({key: twin[key] for key in ("results", "events", "weights")}))


@rule("StopIteration from a hook is an error like any other; in tf.estimator it passes for the end of the input")
def stop_iteration_is_an_error(recording, name, scenario, expected, cases):
    if "raise_StopIteration_" in name:
        twin = cases[name.replace("raise_StopIteration_", "raise_user1_")]
        expected.update(copy.deepcopy({key: twin[key] for key in ("results", "events", "weights")}))
        for result in expected["results"]:
            if result["error"]:
                result["error"]["type"] = "StopIteration"


@rule(
    "Spec hooks come out of model_fn, which is traced with the first batch; hooks of the call begin before it is drawn"
)
def spec_hooks_begin_after_discovery(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        who = cast(scenario, call)
        begins = [line for line in result["trace"] if phase(line) == "begin" and owner(line) in who.hooks]
        if not begins or not who.chief:
            continue
        if result["error"] and result["error"]["message"].startswith("raised in begin"):
            raising = result["error"]["message"].rpartition(" ")[2]
            order = who.users + who.chief + who.training
            ordered = [f"{hook}.begin" for hook in order[: order.index(raising) + 1]] if raising in order else begins
        else:
            ordered = [
                line for names in (who.users, who.chief, who.training) for line in begins if owner(line) in names
            ]
        first = result["trace"].index(begins[0])
        rest = [line for line in result["trace"] if line not in begins]
        result["trace"] = rest[:first] + ordered + rest[first:]


@rule("Hooks are asked before a step only when there is a batch for it")
def no_step_without_a_batch(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        if not result["error"] or result["error"]["message"].startswith("raised in end"):
            who = cast(scenario, call)
            for hooks in (who.hooks, who.evaluation):
                result["trace"] = without(result["trace"], unmatched_before_run(result["trace"], hooks))


@rule("Without a first batch nothing is known of the model: nothing is created, nothing saved")
def nothing_is_created_without_a_batch(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        if call.get("input", {}).get("rows") != 0:
            continue
        if call["call"] == "train_and_evaluate":
            result.update(returned=None, trace=result["trace"][:1], saves=[], checkpoints=[], latest_checkpoint=None)
            result["error"] = {"type": "InputError", "message": "nothing was trained"}
            expected.update(events={}, weights=None)
            continue
        who = cast(scenario, call)
        from_spec = [hook for hook in (*who.hooks, *who.evaluation) if hook not in names(call.get("hooks"))]
        gone = ("before_save", "after_save", "after_create_session")
        result["trace"] = [line for line in result["trace"] if phase(line) not in gone and owner(line) not in from_spec]
        result["saves"] = []
        if result["checkpoints"] == [0]:
            result["checkpoints"], result["latest_checkpoint"], expected["weights"] = [], None, None


def names(specs):
    return [spec.get("name") for spec in specs or ()]


@rule("The step a run starts from is in a checkpoint already and is not saved again")
def resumed_step_is_not_saved_again(recording, name, scenario, expected, cases):
    before = None
    for call, result in each_call(scenario, expected):
        if result["saves"] and result["saves"][0] == before:
            result["saves"] = result["saves"][1:]
            lines = {
                f"{who}.{what}({before})"
                for who in cast(scenario, call).listeners
                for what in ("before_save", "after_save")
            }
            result["trace"] = [line for line in result["trace"] if line not in lines]
        before = result["latest_checkpoint"]


@rule("A save follows the hooks of its step and holds their states; its evaluations precede them: they can act on them")
def save_follows_the_hooks(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        who, trace, moved = cast(scenario, call), result["trace"], []
        position = 0
        for start, stop in save_blocks(trace, who):
            if call["call"] not in ("train", "train_and_evaluate"):
                break
            block = trace[start:stop]
            end = stop
            while end < len(trace) and phase(trace[end]) == "after_run" and owner(trace[end]) in who.hooks:
                end += 1
            in_step = unmatched_before_run(trace[:stop], who.hooks)
            after = trace[stop:end]
            if in_step and result["error"] and stop == len(trace):
                after = [f"{hook}.after_run" for hook in who.hooks]
            saving = [line for line in block if owner(line) in who.listeners]
            exports = [line for line in block if phase(line) == "export"]
            evaluating = [line for line in block if line not in saving and line not in exports]
            moved += trace[position:start] + evaluating
            if evaluating and result["error"] and stop == len(trace) and not exports:
                saving = after = []  # the evaluation raised
            moved += after + saving + exports
            position = end
        result["trace"] = moved + trace[position:]


@rule("`end` is called for every hook that has begun, whatever another one raises")
def end_is_always_called(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        if not result["error"]:
            continue
        who, trace = cast(scenario, call), result["trace"]
        for hooks in (who.evaluation, who.hooks):
            begun = [hook for hook in hooks if f"{hook}.begin" in trace]
            ended = {owner(line) for line in trace if phase(line) == "end"}
            start = re.search(
                r"\.after_create_session\((\d+)\)", " ".join(line for line in trace if owner(line) in hooks)
            )
            step = (int(start[1]) if start else 0) + steps_made(trace, hooks)
            trace = trace + [f"{hook}.end({step})" for hook in begun if hook not in ended]
        result["trace"] = trace


@rule("In an evaluation or prediction a hook's step counts its batches; the global step is in the results")
def evaluations_count_batches(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        hooks, counts, lines = cast(scenario, call).evaluation, {}, []
        for line in result["trace"]:
            hook = owner(line)
            if hook in hooks and phase(line) == "begin":
                counts[hook] = 0
            if hook in hooks and phase(line) == "after_run":
                counts[hook] += 1
            if hook in hooks and phase(line) in ("after_create_session", "end"):
                made = 0 if phase(line) == "after_create_session" else max(counts.values())
                line = re.sub(r"\(\d+\)", f"({made})", line)
            lines.append(line)
        result["trace"] = lines


@rule("The device works up to two batches ahead of the predictions that are handed out")
def predictions_run_ahead(recording, name, scenario, expected, cases):
    for call, result in each_call(scenario, expected):
        if call["call"] != "predict" or not any(phase(line) == "before_run" for line in result["trace"]):
            continue
        head, batches, rows = [], [], []
        for line in result["trace"]:
            if line == "yielded":
                rows[-1].append(line)
            elif phase(line) in ("before_run", "after_run"):
                if phase(line) == "before_run" and (not batches or phase(batches[-1][-1]) == "after_run"):
                    batches.append([])
                    rows.append([])
                batches[-1].append(line)
            elif not batches:
                head.append(line)
        tail = result["trace"][len(head) + sum(map(len, batches)) + sum(map(len, rows)) :]
        ordered, waiting = list(head), []
        for lines, yielded in zip(batches, rows, strict=True):
            ordered += lines
            waiting.append(yielded)
            if len(waiting) > 2:
                ordered += waiting.pop(0)
        ends = [line for line in tail if phase(line) == "end"]
        ordered += [line for yielded in waiting for line in yielded] + ends
        if batches:
            result["trace"] = ordered
