"""Records when the hooks of tf.estimator act: logging, summaries, step counting, waiting, final values, timers."""

import itertools
import time
from unittest import mock

from tf_recording import error_of, tf, write
from tf_scenario import run

FOREVER = {"epochs": None}


def train(**arguments):
    return {"call": "train", "input": FOREVER, **arguments}


def logging_hook(**arguments):
    return {"hook": "LoggingTensorHook", "tensors": ["batch_loss"], **arguments}


COUNTED = {"name": "counted"}


def scenarios():
    """Traces show ``log(...)`` and ``write(step)`` between the calls of a hook named ``counted``."""
    for every in (1, 2, 3, 5, 100):
        hooks = [logging_hook(every_n_iter=every), COUNTED]
        yield f"logging_every_{every}", {}, {}, [train(max_steps=10, hooks=hooks)]
        hooks = [logging_hook(every_n_iter=every, at_end=True), COUNTED]
        yield f"logging_every_{every}_at_end", {}, {}, [train(max_steps=10, hooks=hooks)]
    yield "logging_at_end_only", {}, {}, [train(max_steps=5, hooks=[logging_hook(at_end=True), COUNTED])]
    yield "logging_every_n_secs", {}, {}, [train(max_steps=5, hooks=[logging_hook(every_n_secs=600), COUNTED])]
    resumed = [logging_hook(every_n_iter=4), COUNTED]
    yield "logging_resumed", {}, {}, [train(max_steps=6, hooks=resumed), train(max_steps=12, hooks=resumed)]
    yield (
        "logging_in_evaluate",
        {},
        {},
        [
            {"call": "evaluate", "input": {"epochs": 1}, "hooks": [logging_hook(every_n_iter=2), COUNTED]},
        ],
    )
    for every in (1, 2, 3, 4, 100):
        config = {"save_summary_steps": every}
        yield f"summaries_every_{every}", config, {"summary": True}, [train(max_steps=10)]
    yield "summaries_resumed", {"save_summary_steps": 4}, {"summary": True}, [train(max_steps=6), train(max_steps=12)]
    yield "summaries_off", {"save_summary_steps": 0}, {"summary": True}, [train(max_steps=10)]
    yield "summaries_none", {"save_summary_steps": None}, {"summary": True}, [train(max_steps=10)]
    for every in (1, 2, 3, 100, None):
        config = {"log_step_count_steps": every, "save_summary_steps": 0}
        yield f"log_step_count_{every}", config, {}, [train(max_steps=10)]
    for every in (1, 2, 3, 4, 100):
        hook = {"hook": "StepCounterHook", "every_n_steps": every}
        yield f"step_counter_every_{every}", {}, {}, [train(max_steps=10, hooks=[hook, COUNTED])]
    hook = {"hook": "StepCounterHook", "every_n_steps": 4}
    yield (
        "step_counter_resumed",
        {},
        {},
        [
            train(max_steps=6, hooks=[hook, COUNTED]),
            train(max_steps=15, hooks=[hook, COUNTED]),
        ],
    )
    for every in (1, 3, 4, 100):
        params = {"training_hooks": [{"hook": "SummarySaverHook", "save_steps": every}, COUNTED]}
        yield f"summary_saver_every_{every}", {}, params, [train(max_steps=10)]
    params = {"training_hooks": [{"hook": "SummarySaverHook", "save_steps": 4}, COUNTED]}
    yield "summary_saver_resumed", {}, params, [train(max_steps=6), train(max_steps=12)]
    for until in (0, 3):
        hook = {"hook": "GlobalStepWaiterHook", "wait_until_step": until}
        calls = [train(max_steps=4), train(max_steps=6, hooks=[hook, COUNTED])]
        yield f"global_step_waiter_{until}", {}, {}, calls
    params = {"training_hooks": [{"hook": "FinalOpsHook"}, COUNTED]}
    yield "final_ops", {}, params, [train(max_steps=3)]


TIMERS = {
    "every_1_step": {"every_steps": 1},
    "every_3_steps": {"every_steps": 3},
    "every_5_steps": {"every_steps": 5},
    "every_1_sec": {"every_secs": 1.0},
    "every_2.5_secs": {"every_secs": 2.5},
}
CALLS = {
    "each_step": [(step, float(step)) for step in range(1, 11)],
    "from_0": [(step, float(step)) for step in range(11)],
    "same_step_twice": [(step // 2, step * 0.6) for step in range(12)],
    "steps_of_4": [(4 * step, step * 0.9) for step in range(8)],
    "uneven": [(0, 0.0), (1, 0.1), (2, 3.0), (3, 3.1), (7, 3.2), (8, 9.0), (20, 9.1), (21, 30.0)],
    "resumed_at_103": [(step, (step - 103) * 0.5) for step in range(103, 115)],
}


def timer(arguments, calls):
    """``[step, second, triggered, what update_last_triggered_step returned]`` for each call, with the clock given."""
    made, rows = tf.estimator.SecondOrStepTimer(**arguments), []
    for step, second in calls:
        with mock.patch.object(time, "time", return_value=1000.0 + second):
            triggered = made.should_trigger_for_step(step)
            returned = made.update_last_triggered_step(step) if triggered else None
        rows.append([step, second, triggered, returned, made.last_triggered_step()])
    made.reset()
    return {"arguments": arguments, "calls": rows, "after_reset": made.last_triggered_step()}


BAD_ARGUMENTS = {
    "timer_none": (tf.estimator.SecondOrStepTimer, {}),
    "timer_both": (tf.estimator.SecondOrStepTimer, {"every_secs": 2.0, "every_steps": 10}),
    "logging_none": (tf.estimator.LoggingTensorHook, {"tensors": ["t"]}),
    "logging_both": (tf.estimator.LoggingTensorHook, {"tensors": ["t"], "every_n_iter": 5, "every_n_secs": 5}),
    "logging_0": (tf.estimator.LoggingTensorHook, {"tensors": ["t"], "every_n_iter": 0}),
    "logging_negative": (tf.estimator.LoggingTensorHook, {"tensors": ["t"], "every_n_iter": -1}),
    "stop_none": (tf.estimator.StopAtStepHook, {}),
    "stop_both": (tf.estimator.StopAtStepHook, {"num_steps": 10, "last_step": 20}),
    "saver_none": (tf.estimator.CheckpointSaverHook, {"checkpoint_dir": "folder"}),
    "saver_both": (tf.estimator.CheckpointSaverHook, {"checkpoint_dir": "folder", "save_secs": 1, "save_steps": 1}),
    "counter_none": (tf.estimator.StepCounterHook, {"every_n_steps": None, "every_n_secs": None}),
    "counter_both": (tf.estimator.StepCounterHook, {"every_n_steps": 1, "every_n_secs": 1}),
    "summary_none": (tf.estimator.SummarySaverHook, {"summary_op": "op"}),
    "summary_both": (tf.estimator.SummarySaverHook, {"save_steps": 1, "save_secs": 1, "summary_op": "op"}),
    "summary_no_op": (tf.estimator.SummarySaverHook, {"save_steps": 1}),
}


def main():
    cases = {
        name: run({"config": config, "params": params, "calls": calls}) for name, config, params, calls in scenarios()
    }
    for (name, arguments), (sequence, calls) in itertools.product(TIMERS.items(), CALLS.items()):
        cases[f"timer_{name}_{sequence}"] = {"timer": timer(arguments, calls)}
    for name, (make, arguments) in BAD_ARGUMENTS.items():
        cases[f"refused_{name}"] = {
            "class": make.__name__,
            "arguments": arguments,
            "error": error_of(make, **arguments),
        }
    write(__file__, cases, helpers=("tf_scenario.py", "tf_tracers.py"))


if __name__ == "__main__":
    main()
