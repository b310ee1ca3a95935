"""Records which steps are trained and saved: limits, resume, cadence, retention, end of input, stops, faults."""

from tf_recording import write
from tf_scenario import run

FOREVER = {"epochs": None}


def train(**arguments):
    return {"call": "train", "input": FOREVER, **arguments}


def listener(name="listener", **behaviour):
    return {"name": name, **behaviour}


def stopper(at, where="after_run", name="stopper"):
    return {"name": name, "stop_in": where, "stop_at": at}


EVERY_10 = {"save_checkpoints_steps": 10}
ALL = {"save_checkpoints_steps": 10, "keep_checkpoint_max": None}
NEVER = {"save_checkpoints_steps": None, "save_checkpoints_secs": None}

SCENARIOS = {
    # how far
    "max_steps_fresh": (EVERY_10, [train(max_steps=25)]),
    "steps_fresh": (EVERY_10, [train(steps=25)]),
    "steps_add_up": (ALL, [train(steps=10), train(steps=10)]),
    "max_steps_is_absolute": (ALL, [train(max_steps=10), train(max_steps=10, hooks=[{"name": "hook"}])]),
    "max_steps_below_reached": (ALL, [train(max_steps=10), train(max_steps=4)]),
    "max_steps_then_steps": (ALL, [train(max_steps=7), train(steps=5)]),
    "steps_then_max_steps": (ALL, [train(steps=7), train(max_steps=12)]),
    "one_step": (EVERY_10, [train(max_steps=1)]),
    "neither_until_input_ends": (EVERY_10, [train(input={"epochs": 2})]),
    "three_calls": (ALL, [train(steps=3), train(steps=4), train(max_steps=20)]),
    # cadence
    "resume_shifts_cadence": (ALL, [train(max_steps=3), train(max_steps=25)]),
    "max_on_cadence": (ALL, [train(max_steps=20)]),
    "max_on_cadence_resumed": (ALL, [train(max_steps=20), train(max_steps=40)]),
    "save_each_step": ({"save_checkpoints_steps": 1, "keep_checkpoint_max": None}, [train(max_steps=5)]),
    "save_every_3": ({"save_checkpoints_steps": 3, "keep_checkpoint_max": None}, [train(max_steps=10)]),
    "save_every_100_of_7": ({"save_checkpoints_steps": 100}, [train(max_steps=7)]),
    "save_secs_long": ({"save_checkpoints_secs": 600}, [train(max_steps=7)]),
    "default_cadence": ({}, [train(max_steps=7), train(steps=2)]),
    "never_saved": (NEVER, [train(max_steps=7)]),
    "never_saved_twice": (NEVER, [train(steps=3), train(steps=3)]),
    "never_saved_listener": (NEVER, [train(steps=3, listeners=[listener()])]),
    # retention
    "keep_2": ({"save_checkpoints_steps": 1, "keep_checkpoint_max": 2}, [train(max_steps=7)]),
    "keep_1": ({"save_checkpoints_steps": 1, "keep_checkpoint_max": 1}, [train(max_steps=7)]),
    "keep_5_default": ({"save_checkpoints_steps": 1}, [train(max_steps=7)]),
    "keep_0": ({"save_checkpoints_steps": 1, "keep_checkpoint_max": 0}, [train(max_steps=7)]),
    "keep_none": ({"save_checkpoints_steps": 1, "keep_checkpoint_max": None}, [train(max_steps=7)]),
    "keep_over_restart": ({"save_checkpoints_steps": 1}, [train(max_steps=4), train(max_steps=7)]),
    "keep_lowered": (
        {"save_checkpoints_steps": 1},
        [train(max_steps=6), train(max_steps=8, config={"keep_checkpoint_max": 2})],
    ),
    "keep_raised": (
        {"save_checkpoints_steps": 1, "keep_checkpoint_max": 2},
        [train(max_steps=6), train(max_steps=9, config={"keep_checkpoint_max": 4})],
    ),
    # end of input
    "input_ends_at_12": (ALL, [train(max_steps=100, input={"epochs": 2})]),
    "input_ends_on_cadence": ({"save_checkpoints_steps": 6}, [train(max_steps=100, input={"epochs": 2})]),
    "input_ends_then_again": (ALL, [train(input={"epochs": 1}), train(input={"epochs": 1})]),
    "input_shorter_than_steps": (ALL, [train(steps=50, input={"epochs": 1})]),
    "input_ends_at_max_steps": (ALL, [train(max_steps=6, input={"epochs": 1})]),
    "input_empty": (ALL, [train(max_steps=5, input={"rows": 0})]),
    "input_empty_after_training": (ALL, [train(max_steps=5), train(max_steps=9, input={"rows": 0})]),
    "input_ragged": (ALL, [train(input={"rows": 10})]),
    "input_single_row": (ALL, [train(input={"rows": 1})]),
    # stops
    "stop_after_7": (EVERY_10, [train(max_steps=25, hooks=[stopper(7)])]),
    "stop_after_10_on_cadence": (EVERY_10, [train(max_steps=25, hooks=[stopper(10)])]),
    "stop_after_1": (EVERY_10, [train(max_steps=25, hooks=[stopper(1)])]),
    "stop_before_run_7": (EVERY_10, [train(max_steps=25, hooks=[stopper(7, "before_run")])]),
    "stop_then_resume": (ALL, [train(max_steps=25, hooks=[stopper(7)]), train(max_steps=25)]),
    "stop_at_step_hook_last": (ALL, [train(max_steps=25, hooks=[{"hook": "StopAtStepHook", "last_step": 8}])]),
    "stop_at_step_hook_num": (
        ALL,
        [train(max_steps=5), train(max_steps=25, hooks=[{"hook": "StopAtStepHook", "num_steps": 8}])],
    ),
    "stop_at_step_hook_reached": (
        ALL,
        [train(max_steps=5), train(max_steps=25, hooks=[{"hook": "StopAtStepHook", "last_step": 5}])],
    ),
    "listener_stops_at_10": (ALL, [train(max_steps=25, listeners=[listener(stop_at_save=2)])]),
    "listener_stop_at_first_save": (ALL, [train(max_steps=15, listeners=[listener(stop_at_save=1)])]),
    "listener_stops_second_of_two": (
        ALL,
        [train(max_steps=25, listeners=[listener("first"), listener("second", stop_at_save=2)])],
    ),
    "listener_stops_first_of_two": (
        ALL,
        [train(max_steps=25, listeners=[listener("first", stop_at_save=2), listener("second")])],
    ),
    # faults
    "hook_raises_at_12": (
        EVERY_10,
        [train(max_steps=25, hooks=[{"name": "hook", "raise_in": "after_run", "raise_at": 12}])],
    ),
    "hook_raises_at_3": (
        EVERY_10,
        [train(max_steps=25, hooks=[{"name": "hook", "raise_in": "after_run", "raise_at": 3}])],
    ),
    "hook_raises_then_resume": (
        ALL,
        [train(max_steps=25, hooks=[{"name": "hook", "raise_in": "after_run", "raise_at": 12}]), train(max_steps=25)],
    ),
    "nan_at_batch_3": (EVERY_10, [train(max_steps=25, input={"epochs": None, "nan_row": 10})]),
    "nan_on_saving_step": ({"save_checkpoints_steps": 3}, [train(max_steps=25, input={"epochs": None, "nan_row": 10})]),
    "nan_not_fatal": (
        EVERY_10,
        [
            train(
                max_steps=25,
                input={"epochs": None, "nan_row": 10},
                hooks=[{"hook": "NanTensorHook", "fail_on_nan_loss": False}],
            )
        ],
    ),
    # a user's own saver
    "own_saver_hook": (
        EVERY_10,
        [train(max_steps=9, hooks=[{"hook": "CheckpointSaverHook", "save_steps": 4}])],
    ),
    "own_saver_hook_never_saved": (
        NEVER,
        [train(max_steps=9, hooks=[{"hook": "CheckpointSaverHook", "save_steps": 4}], listeners=[listener()])],
    ),
    # weights after n steps, in order of the rows
    "weights_after_1": ({}, [train(steps=1)]),
    "weights_after_6": ({}, [train(steps=6)]),
    "weights_after_50": ({}, [train(steps=50)]),
    "weights_resumed_restart_input": ({}, [train(steps=4), train(steps=4)]),
    "weights_ragged": ({}, [train(input={"rows": 10, "epochs": 1})]),
}


def main():
    cases = {}
    for name, (config, calls) in SCENARIOS.items():
        cases[name] = run({"config": config, "calls": calls})
    write(__file__, cases, helpers=("tf_scenario.py", "tf_tracers.py"))


if __name__ == "__main__":
    main()
