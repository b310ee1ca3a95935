"""Records the early-stopping hooks on evaluations already on disk, and the in-memory evaluator, in real training."""

import os
import tempfile

from tf_recording import described, plain, tf, write
from tf_scenario import ONE_THREAD, input_fn, model_fn
from tf_tracers import TracingHook

experimental = tf.estimator.experimental

REFERENCE = [
    (1000, {"loss": 0.8, "accuracy": 0.5}),
    (2000, {"loss": 0.7, "accuracy": 0.6}),
    (3000, {"loss": 0.4, "accuracy": 0.7}),
    (3500, {"loss": 0.41, "accuracy": 0.68}),
]
EVALUATIONS = {
    "reference": REFERENCE,
    "none": [],
    "one": REFERENCE[:1],
    "rising": [(step, {"loss": step / 1000, "accuracy": step / 1000}) for step in (100, 200, 300, 400)],
    "falling": [(step, {"loss": 1 - step / 1000, "accuracy": 1 - step / 1000}) for step in (100, 200, 300, 400)],
    "constant": [(step, {"loss": 0.5, "accuracy": 0.5}) for step in (100, 200, 300, 400)],
    "same_step_twice": [
        (100, {"loss": 0.5}),
        (100, {"loss": 0.9, "accuracy": 0.3}),
        (200, {"loss": 0.6, "accuracy": 0.4}),
    ],
    "with_nan": [(100, {"loss": 0.5}), (200, {"loss": float("nan")}), (300, {"loss": 0.4}), (400, {"loss": 0.45})],
    "metric_in_some": [(100, {"loss": 0.5}), (200, {"loss": 0.4, "accuracy": 0.9}), (300, {"loss": 0.3})],
}

HIGHER, LOWER, INCREASE, DECREASE = (
    experimental.stop_if_higher_hook,
    experimental.stop_if_lower_hook,
    experimental.stop_if_no_increase_hook,
    experimental.stop_if_no_decrease_hook,
)


def rules():
    """``name, evaluations, [(make, metric, number, min_steps)]``"""
    for threshold in (0.4, 0.41, 0.6, 0.69, 0.7, 0.8):
        for minimum in (0, 3000, 3500, 4000):
            yield "higher", "reference", [(HIGHER, "accuracy", threshold, minimum)]
            yield "lower", "reference", [(LOWER, "loss", threshold, minimum)]
    for most in (1, 499, 500, 501, 1500):
        for minimum in (0, 3000, 4000):
            yield "no_increase", "reference", [(INCREASE, "accuracy", most, minimum)]
            yield "no_decrease", "reference", [(DECREASE, "loss", most, minimum)]
    for evaluations in ("none", "one", "rising", "falling", "constant", "same_step_twice"):
        yield "higher", evaluations, [(HIGHER, "loss", 0.3, 0)]
        yield "lower", evaluations, [(LOWER, "loss", 0.3, 0)]
        for most in (100, 200, 300, 1000):
            yield "no_increase", evaluations, [(INCREASE, "loss", most, 0)]
            yield "no_decrease", evaluations, [(DECREASE, "loss", most, 0)]
        yield "no_decrease_from_200", evaluations, [(DECREASE, "loss", 200, 200)]
    for make, name in ((HIGHER, "higher"), (LOWER, "lower"), (INCREASE, "no_increase"), (DECREASE, "no_decrease")):
        yield f"{name}_nan", "with_nan", [(make, "loss", 0.42 if make in (HIGHER, LOWER) else 200, 0)]
        yield f"{name}_unknown_metric", "reference", [(make, "unknown", 0.5, 0)]
        yield f"{name}_metric_in_some", "metric_in_some", [(make, "accuracy", 0.5, 0)]
        yield f"{name}_metric_in_some_from_200", "metric_in_some", [(make, "accuracy", 0.5, 150)]
    yield "both", "reference", [(DECREASE, "loss", 1500, 0), (LOWER, "loss", 0.3, 0)]
    yield "both", "reference", [(DECREASE, "loss", 1500, 0), (LOWER, "loss", 0.5, 0)]
    yield "both", "reference", [(DECREASE, "loss", 500, 0), (LOWER, "loss", 0.3, 0)]


def write_evaluations(folder, evaluations):
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(folder)
        for step, metrics in evaluations:
            values = [tf.compat.v1.Summary.Value(tag=tag, simple_value=value) for tag, value in metrics.items()]
            writer.add_summary(tf.compat.v1.Summary(value=values), step)
        writer.close()


def estimator_in(model_dir):
    params = {"hook": None, "model_fn_calls": []}
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=1, session_config=ONE_THREAD)
    return tf.estimator.Estimator(model_fn, config=config, params=params)


def trained(estimator, hooks, max_steps=3, epochs=None):
    """Trains with the hooks and tells the step reached and the error, if any."""
    error = None
    try:
        estimator.train(input_fn({"epochs": epochs}, [], "train"), hooks=hooks, max_steps=max_steps)
    except Exception as raised:
        error = described(raised)
    tf.compat.v1.summary.FileWriterCache.clear()
    return {"global_step": int(estimator.get_variable_value("global_step")), "error": error}


def rule_case(evaluations, made, name="eval", **options):
    model_dir = tempfile.mkdtemp()
    estimator = estimator_in(model_dir)
    if EVALUATIONS[evaluations]:
        write_evaluations(os.path.join(model_dir, name), EVALUATIONS[evaluations])
    options = {"run_every_secs": None, "run_every_steps": 1, **options}
    hooks = [make(estimator, metric, number, min_steps=minimum, **options) for make, metric, number, minimum in made]
    found = trained(estimator, hooks)
    rules_given = [
        {"rule": make.__name__, "metric": metric, "number": number, "min_steps": minimum}
        for make, metric, number, minimum in made
    ]
    return {
        "evaluations": EVALUATIONS[evaluations],
        "rules": rules_given,
        "stopped": found["global_step"] < 3 and found["error"] is None,
        **found,
    }


def own_predicate(stop_at_call, every, max_steps=12, resume_from=None):
    """When a predicate is asked and where training stops if it says so at its ``stop_at_call``-th call."""
    estimator = estimator_in(tempfile.mkdtemp())
    trace, calls = [], []

    def should_stop():
        calls.append(1)
        trace.append("asked")
        return len(calls) >= stop_at_call

    if resume_from:
        ignored = experimental.make_early_stopping_hook(estimator, lambda: False, None, 1)
        trained(estimator, [ignored], resume_from)
    hook = experimental.make_early_stopping_hook(estimator, should_stop, run_every_secs=None, run_every_steps=every)
    found = trained(estimator, [hook, TracingHook({"name": "counted"}, trace)], max_steps)
    return {"stop_at_call": stop_at_call, "every": every, "resume_from": resume_from, "trace": trace, **found}


def in_memory(every, max_steps=10, resume_from=None, steps=None, name=None):
    """The steps at which InMemoryEvaluatorHook wrote evaluations, with their metrics."""
    estimator = estimator_in(tempfile.mkdtemp())
    if resume_from:
        trained(estimator, [], resume_from)
    hook = experimental.InMemoryEvaluatorHook(
        estimator, input_fn({}, [], "evaluate"), steps=steps, name=name, every_n_iter=every
    )
    found = trained(estimator, [hook], max_steps)
    events = []
    folder = estimator.eval_dir(name)
    for path in sorted(os.listdir(folder)):
        for event in tf.compat.v1.train.summary_iterator(os.path.join(folder, path)):
            metrics = {value.tag: value.simple_value for value in event.summary.value if value.HasField("simple_value")}
            if metrics:
                events.append([event.step, {tag: tf.constant(value).numpy() for tag, value in metrics.items()}])
    given = {"every_n_iter": every, "steps": steps, "name": name, "resume_from": resume_from, "max_steps": max_steps}
    return {"in_memory_evaluator": given, "evaluations": events, "folder": os.path.basename(folder), **found}


def refusals():
    estimator = estimator_in(tempfile.mkdtemp())

    def attempt(make):
        try:
            make()
        except Exception as raised:
            return {"error": described(raised)}
        return {"error": None}

    both = {"run_every_secs": 60, "run_every_steps": 10}
    yield "estimator_is_text", attempt(lambda: HIGHER("text", "loss", 0.5))
    yield "steps_with_default_secs", attempt(lambda: HIGHER(estimator, "loss", 0.5, run_every_steps=10))
    yield "both_intervals", attempt(lambda: INCREASE(estimator, "loss", 5, **both))
    yield "neither_interval", attempt(lambda: LOWER(estimator, "loss", 0.5, run_every_secs=None))
    yield "should_stop_not_callable", attempt(lambda: experimental.make_early_stopping_hook(estimator, 1))
    yield (
        "in_memory_every_0",
        attempt(lambda: experimental.InMemoryEvaluatorHook(estimator, input_fn({}, [], "e"), every_n_iter=0)),
    )
    yield (
        "in_memory_estimator_is_text",
        attempt(lambda: experimental.InMemoryEvaluatorHook("text", input_fn({}, [], "e"))),
    )
    unstopped = estimator_in(tempfile.mkdtemp())
    trained(unstopped, [], 2)
    hook = LOWER(unstopped, "loss", 0.5, run_every_secs=None, run_every_steps=1)
    yield "added_to_a_resumed_run", trained(unstopped, [hook], 4)


def main():
    cases = {}
    for index, (name, evaluations, made) in enumerate(rules()):
        cases[f"{index:03}_{name}_{evaluations}"] = plain(rule_case(evaluations, made))
    below = [(LOWER, "loss", 0.5, 0)]
    cases["named_evaluation"] = rule_case("reference", below, name="eval_val")
    for stop_at_call in (1, 2, 3, 100):
        for every in (1, 2, 3, 5):
            cases[f"predicate_{stop_at_call}_every_{every}"] = own_predicate(stop_at_call, every)
    cases["predicate_resumed"] = own_predicate(2, 3, resume_from=4)
    for every in (1, 3, 4, 5, 100):
        cases[f"in_memory_every_{every}"] = in_memory(every)
    cases["in_memory_resumed"] = in_memory(4, resume_from=3)
    cases["in_memory_steps_named"] = in_memory(5, steps=2, name="val")
    cases.update({f"refused_{name}": case for name, case in refusals()})
    write(__file__, cases, helpers=("tf_scenario.py", "tf_tracers.py"))


if __name__ == "__main__":
    main()
