"""Records the order of all hook and listener calls: train, evaluate, predict; stops and faults from each place."""

from tf_recording import write
from tf_scenario import run

SPEC_HOOKS = {
    "training_chief_hooks": [{"name": "chief"}],
    "training_hooks": [{"name": "training"}],
    "evaluation_hooks": [{"name": "evaluation"}],
    "prediction_hooks": [{"name": "prediction"}],
}
USERS = [{"name": "user1"}, {"name": "user2"}]
LISTENERS = [{"name": "listener1"}, {"name": "listener2"}]
ONCE = {"epochs": 1}
FOREVER = {"epochs": None}


def everything(call, **arguments):
    """One call with two user hooks and, for training, two listeners; ``behave`` adds behaviour to those named."""
    behave = arguments.pop("behave", {})
    params = {
        place: [{**hook, **behave.get(hook["name"], {})} for hook in hooks] for place, hooks in SPEC_HOOKS.items()
    }
    made = {"call": call, "params": params, **arguments}
    made["hooks"] = [{**hook, **behave.get(hook["name"], {})} for hook in arguments.get("hooks", USERS)]
    if call in ("train", "train_and_evaluate"):
        made["listeners"] = [{**item, **behave.get(item["name"], {})} for item in LISTENERS]
        made.setdefault("input", FOREVER)
        made.setdefault("max_steps", 3)
    return made


def scenarios():
    every_2 = {"save_checkpoints_steps": 2}
    every_10 = {"save_checkpoints_steps": 10}
    yield "train_reference", every_10, [everything("train")]
    yield "train_save_in_between", every_2, [everything("train", max_steps=5)]
    yield "train_resumed", every_2, [everything("train", max_steps=3), everything("train", max_steps=6)]
    yield "train_finished", every_2, [everything("train"), everything("train")]
    yield "train_input_ends", every_10, [everything("train", input={"rows": 8}, max_steps=9)]
    yield "train_input_ends_on_save", every_2, [everything("train", input={"rows": 8}, max_steps=9)]
    yield "train_input_empty", every_10, [everything("train", input={"rows": 0}, max_steps=9)]
    yield "train_never_saved", {"save_checkpoints_steps": None, "save_checkpoints_secs": None}, [train_alone()]
    yield "train_same_hook_name_twice", every_10, [everything("train", hooks=[USERS[0], USERS[0]])]
    yield "train_nan", every_10, [everything("train", max_steps=5, input={"epochs": None, "nan_row": 5})]
    hooks = ("chief", "user1", "user2", "training")
    for name in hooks:
        for place in ("before_run", "after_run"):
            behave = {name: {"stop_in": place, "stop_at": 2}}
            yield f"train_stop_{name}_{place}", every_10, [everything("train", max_steps=9, behave=behave)]
        for place in ("begin", "after_create_session", "before_run", "after_run", "end"):
            behave = {name: {"raise_in": place, "raise_at": 1}}
            yield f"train_raise_{name}_{place}", every_10, [everything("train", behave=behave)]
    for raises in ("StopIteration", "OutOfRangeError"):
        for place in ("begin", "after_create_session", "before_run", "after_run", "end"):
            behave = {"user1": {"raise_in": place, "raise_at": 1, "raises": raises}}
            yield f"train_raise_{raises}_{place}", every_10, [everything("train", behave=behave)]
    for name in ("listener1", "listener2"):
        for at in (1, 2, 3):
            behave = {name: {"stop_at_save": at}}
            yield f"train_stop_{name}_{at}", every_2, [everything("train", max_steps=5, behave=behave)]
        for place, at in (("begin", 1), ("before_save", 1), ("before_save", 2), ("after_save", 2), ("end", 1)):
            behave = {name: {"raise_in": place, "raise_at": at}}
            yield f"train_raise_{name}_{place}_{at}", every_2, [everything("train", max_steps=5, behave=behave)]
    trained = everything("train")
    yield "evaluate_reference", every_10, [trained, everything("evaluate", input={"rows": 8})]
    yield "evaluate_untrained", every_10, [everything("evaluate", input={"rows": 8})]
    yield "evaluate_steps_2", every_10, [trained, everything("evaluate", steps=2, input=FOREVER)]
    yield "evaluate_input_empty", every_10, [trained, everything("evaluate", input={"rows": 0})]
    yield "predict_reference", every_10, [trained, everything("predict", input={"rows": 6})]
    yield "predict_untrained", every_10, [everything("predict", input={"rows": 6})]
    batches = everything("predict", input={"rows": 6}, yield_single_examples=False)
    yield "predict_batches", every_10, [trained, batches]
    yield "predict_input_empty", every_10, [trained, everything("predict", input={"rows": 0})]
    for call, names in (("evaluate", ("user1", "evaluation")), ("predict", ("user1", "prediction"))):
        for name in names:
            for place in ("before_run", "after_run"):
                behave = {name: {"stop_in": place, "stop_at": 2}}
                yield f"{call}_stop_{name}_{place}", every_10, [trained, everything(call, input=ONCE, behave=behave)]
            for place in ("begin", "after_create_session", "before_run", "after_run", "end"):
                behave = {name: {"raise_in": place, "raise_at": 1}}
                yield f"{call}_raise_{name}_{place}", every_10, [trained, everything(call, input=ONCE, behave=behave)]
    both = {"throttle_secs": 0, "exporters": [{"name": "exporter"}], "eval_hooks": [{"name": "eval_user"}], "steps": 1}
    behaviours = {
        "reference": {},
        "stop": {"user1": {"stop_in": "after_run", "stop_at": 3}},
        "raise": {"user1": {"raise_in": "after_run", "raise_at": 3}},
    }
    for name, behave in behaviours.items():
        call = everything("train_and_evaluate", max_steps=5, behave=behave, **both)
        yield f"train_and_evaluate_{name}", every_2, [call]


def train_alone():
    call = everything("train")
    del call["listeners"]
    return call


def main():
    cases = {name: run({"config": config, "calls": calls}) for name, config, calls in scenarios()}
    write(__file__, cases, helpers=("tf_scenario.py", "tf_tracers.py"))


if __name__ == "__main__":
    main()
