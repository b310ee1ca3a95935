"""Records evaluate (metrics, loss, steps, names, events) and predict (rows, batches, keys)."""

from tf_recording import write
from tf_scenario import run

FOREVER = {"epochs": None}
TRAIN = {"call": "train", "input": FOREVER, "steps": 6}
EVERY_3 = {"save_checkpoints_steps": 3}


def evaluate(**arguments):
    return {"call": "evaluate", "input": {"epochs": 1}, **arguments}


def predict(**arguments):
    return {"call": "predict", "input": {"rows": 5, "batch_size": 2}, **arguments}


def scenarios():
    yield "evaluate_untrained", {}, {}, [evaluate()]
    yield "evaluate_trained", {}, {}, [TRAIN, evaluate()]
    yield "evaluate_twice", {}, {}, [TRAIN, evaluate(), evaluate()]
    yield "evaluate_after_more_training", {}, {}, [TRAIN, evaluate(), TRAIN, evaluate()]
    yield "evaluate_named", {}, {}, [TRAIN, evaluate(name="val"), evaluate(name="test"), evaluate()]
    yield "evaluate_empty_name", {}, {}, [TRAIN, evaluate(name="")]
    yield "evaluate_older_checkpoint", EVERY_3, {}, [TRAIN, evaluate(checkpoint_step=3), evaluate(checkpoint_step=0)]
    yield "evaluate_missing_checkpoint", {}, {}, [TRAIN, evaluate(checkpoint_step=77)]
    yield "evaluate_no_metrics", {}, {"no_metrics": True}, [TRAIN, evaluate()]
    for rows in (1, 3, 4, 10, 24):
        for batch_size in (1, 2, 3, 4, 7, 24, 32):
            if batch_size <= 2 * rows:
                call = evaluate(input={"rows": rows, "batch_size": batch_size})
                yield f"evaluate_{rows}_rows_by_{batch_size}", {}, {}, [call]
    for steps in (1, 2, 3, 5, 6, 7, 100):
        yield f"evaluate_steps_{steps}", {}, {}, [TRAIN, evaluate(steps=steps)]
    for steps in (1, 25, 100):
        yield f"evaluate_steps_{steps}_of_endless", {}, {}, [TRAIN, evaluate(steps=steps, input=FOREVER)]
    yield "evaluate_empty_input", {}, {}, [TRAIN, evaluate(input={"rows": 0})]
    yield "evaluate_nan_row", {}, {}, [TRAIN, evaluate(input={"rows": 10, "nan_row": 5})]
    for place in ("before_run", "after_run"):
        stopper = {"name": "stopper", "stop_in": place, "stop_at": 2}
        yield f"evaluate_stopped_in_{place}", {}, {}, [TRAIN, evaluate(hooks=[stopper])]
    yield "evaluate_hook_raises", {}, {}, [TRAIN, evaluate(hooks=[{"name": "hook", "raise_in": "after_run"}])]
    yield "predict_untrained", {}, {}, [predict()]
    yield "predict_trained", {}, {}, [TRAIN, predict()]
    yield "predict_batches", {}, {}, [TRAIN, predict(yield_single_examples=False)]
    yield "predict_one_key", {}, {}, [TRAIN, predict(predict_keys=["y"])]
    yield "predict_key_as_string", {}, {}, [TRAIN, predict(predict_keys="double")]
    yield "predict_two_keys", {}, {}, [TRAIN, predict(predict_keys=["double", "y"])]
    yield "predict_some_keys_unknown", {}, {}, [TRAIN, predict(predict_keys=["y", "unknown"])]
    yield "predict_all_keys_unknown", {}, {}, [TRAIN, predict(predict_keys=["unknown"])]
    yield "predict_bare", {}, {"bare_predictions": True}, [TRAIN, predict()]
    yield "predict_bare_batches", {}, {"bare_predictions": True}, [TRAIN, predict(yield_single_examples=False)]
    yield "predict_bare_with_keys", {}, {"bare_predictions": True}, [TRAIN, predict(predict_keys=["y"])]
    yield "predict_empty_input", {}, {}, [TRAIN, predict(input={"rows": 0})]
    yield "predict_stopped", {}, {}, [TRAIN, predict(hooks=[{"name": "h", "stop_in": "after_run", "stop_at": 2}])]
    yield "predict_does_not_change_files", {}, {}, [TRAIN, predict(), TRAIN]


def main():
    cases = {
        name: run({"config": config, "params": params, "calls": calls}) for name, config, params, calls in scenarios()
    }
    write(__file__, cases, helpers=("tf_scenario.py", "tf_tracers.py"))


if __name__ == "__main__":
    main()
