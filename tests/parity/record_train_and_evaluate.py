"""Records train_and_evaluate: when it evaluates and exports, with which final flag, what it returns."""

from tf_recording import write
from tf_scenario import run

EVERY_10 = {"save_checkpoints_steps": 10, "keep_checkpoint_max": None}
FOREVER = {"epochs": None}
EXPORTER = {"name": "exporter"}
STOP_AT_10 = {"name": "stopper", "stop_in": "after_run", "stop_at": 10}


def both(**arguments):
    defaults = {"input": FOREVER, "throttle_secs": 0, "exporters": [EXPORTER]}
    return {"call": "train_and_evaluate", **defaults, **arguments}


def without_exporters(**arguments):
    call = both(**arguments)
    del call["exporters"]
    return call


EXPORTERS = {
    "one": [EXPORTER],
    "two": [{"name": "a"}, {"name": "b"}],
    "two_other_order": [{"name": "b"}, {"name": "a"}],
    "final_only": [{"name": "final", "final_only": True}],
    "final_and_each": [{"name": "final", "final_only": True}, EXPORTER],
    "raises": [{"name": "exporter", "raise_in": "export", "raise_at": 1}, {"name": "other"}],
}

SCENARIOS = {
    "reference": (EVERY_10, [both(max_steps=25)]),
    "reference_no_exporters": (EVERY_10, [without_exporters(max_steps=25)]),
    "throttled": (EVERY_10, [both(max_steps=25, throttle_secs=600)]),
    "throttled_default": (EVERY_10, [{"call": "train_and_evaluate", "input": FOREVER, "max_steps": 25}]),
    "delayed": (EVERY_10, [both(max_steps=25, start_delay_secs=600)]),
    "delayed_and_throttled": (EVERY_10, [both(max_steps=25, start_delay_secs=600, throttle_secs=600)]),
    "on_cadence": (EVERY_10, [both(max_steps=20)]),
    "on_cadence_throttled": (EVERY_10, [both(max_steps=20, throttle_secs=600)]),
    "before_first_cadence": (EVERY_10, [both(max_steps=4)]),
    "resumed": (EVERY_10, [both(max_steps=25), both(max_steps=40)]),
    "resumed_after_train": (EVERY_10, [{"call": "train", "input": FOREVER, "steps": 3}, both(max_steps=20)]),
    "finished": (EVERY_10, [both(max_steps=25), both(max_steps=25)]),
    "finished_before_by_train": (EVERY_10, [{"call": "train", "input": FOREVER, "steps": 25}, both(max_steps=25)]),
    "beyond_finished": (EVERY_10, [both(max_steps=25), both(max_steps=5)]),
    "input_ends_at_12": (EVERY_10, [both(max_steps=100, input={"epochs": 2})]),
    "input_ends_no_max_steps": (EVERY_10, [both(input={"epochs": 2})]),
    "input_ends_at_max_steps": (EVERY_10, [both(max_steps=12, input={"epochs": 2})]),
    "input_empty": (EVERY_10, [both(max_steps=100, input={"rows": 0})]),
    "stop_at_10": (EVERY_10, [both(max_steps=25, hooks=[STOP_AT_10])]),
    "stop_at_7": (EVERY_10, [both(max_steps=25, hooks=[{**STOP_AT_10, "stop_at": 7}])]),
    "stop_then_again": (EVERY_10, [both(max_steps=25, hooks=[STOP_AT_10]), both(max_steps=25)]),
    "listener_stops": (EVERY_10, [both(max_steps=25, listeners=[{"name": "listener", "stop_at_save": 2}])]),
    "named": (EVERY_10, [both(max_steps=15, eval_name="val")]),
    "named_then_other": (EVERY_10, [both(max_steps=5, eval_name="val"), both(max_steps=9, eval_name="test")]),
    "eval_steps_1": (EVERY_10, [both(max_steps=5, steps=1)]),
    "eval_steps_2": (EVERY_10, [both(max_steps=5, steps=2)]),
    "eval_steps_none": (EVERY_10, [both(max_steps=5, steps=None)]),
    "eval_steps_beyond_input": (EVERY_10, [both(max_steps=5, steps=1000)]),
    "eval_steps_default_on_endless_input": (EVERY_10, [both(max_steps=5, eval_input={"epochs": None})]),
    "eval_input_ragged": (EVERY_10, [both(max_steps=5, eval_input={"rows": 10})]),
    "eval_input_empty": (EVERY_10, [both(max_steps=5, eval_input={"rows": 0})]),
    "eval_stops": (EVERY_10, [both(max_steps=5, eval_hooks=[{"name": "hook", "stop_in": "after_run", "stop_at": 2}])]),
    "eval_raises": (
        EVERY_10,
        [both(max_steps=25, eval_hooks=[{"name": "hook", "raise_in": "after_run", "raise_at": 2}])],
    ),
    "save_each_step": ({"save_checkpoints_steps": 1, "keep_checkpoint_max": None}, [both(max_steps=5)]),
    "save_secs": ({"save_checkpoints_secs": 600}, [both(max_steps=5)]),
    "keep_2": ({"save_checkpoints_steps": 2, "keep_checkpoint_max": 2}, [both(max_steps=9)]),
    "never_saved": ({"save_checkpoints_steps": None, "save_checkpoints_secs": None}, [both(max_steps=5)]),
    "hook_raises_at_12": (
        EVERY_10,
        [both(max_steps=25, hooks=[{"name": "hook", "raise_in": "after_run", "raise_at": 12}])],
    ),
    "nan_at_batch_3": (EVERY_10, [both(max_steps=25, input={"epochs": None, "nan_row": 10})]),
    "user_listener_before_evaluation": (EVERY_10, [both(max_steps=15, listeners=[{"name": "listener"}])]),
    **{f"exporters_{name}": (EVERY_10, [both(max_steps=15, exporters=given)]) for name, given in EXPORTERS.items()},
}


def main():
    cases = {name: run({"config": config, "calls": calls}) for name, (config, calls) in SCENARIOS.items()}
    write(__file__, cases, helpers=("tf_scenario.py", "tf_tracers.py"))


if __name__ == "__main__":
    main()
