"""Early stopping and in-memory evaluation equal tf.estimator 2.15.1 on its recorded cases."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import HookError
from estimator_core.summaries import append_eval_metrics
from estimator_core.testing import FakeRun, drive

RECORDING = Path(__file__).parents[4] / "tests" / "parity" / "recorded" / "early_stopping.json"
CASES: dict[str, Any] = json.loads(RECORDING.read_text())["cases"]
RULES = {name: case for name, case in CASES.items() if "rules" in case}
PREDICATES = {name: case for name, case in CASES.items() if "stop_at_call" in case}
IN_MEMORY = {name: case for name, case in CASES.items() if "in_memory_evaluator" in case}
#: The cases in which this package differs, with the reason.
DIFFERENCES = {
    "named_evaluation": "tf.estimator never looked at named evaluations; eval_name does",
    "147_higher_metric_in_some_from_200_metric_in_some": "the newest evaluation lacks the metric: an error",
}
KEY_ERRORS = {name for name, case in RULES.items() if case["error"]}


def stops(case: dict[str, Any], model_dir: Path) -> bool:
    evaluations = {int(step): metrics for step, metrics in case["evaluations"]}
    estimator = SimpleNamespace(eval_dir=lambda name=None: str(model_dir))
    for step, metrics in evaluations.items():
        # Its event files contained float32. The text "nan" is converted to NaN.
        append_eval_metrics(model_dir, step, {name: np.float32(value) for name, value in metrics.items()}, None)
    hooks = [
        getattr(eh, rule["rule"])(
            estimator, rule["metric"], rule["number"], min_steps=rule["min_steps"], run_every_steps=1
        )
        for rule in case["rules"]
    ]
    return drive(hooks, steps=3, run=FakeRun(step=max(evaluations, default=0))).stop_reason is not None


@pytest.mark.parametrize("name", sorted(set(RULES) - KEY_ERRORS - set(DIFFERENCES)))
def test_rules(name: str, tmp_path: Path):
    assert stops(RULES[name], tmp_path) == RULES[name]["stopped"]


def test_the_differences_are_real(tmp_path: Path):
    assert not RULES["named_evaluation"]["stopped"]
    assert stops(RULES["named_evaluation"], tmp_path / "named")
    with pytest.raises(HookError, match="has no metric 'accuracy'"):
        stops(RULES["147_higher_metric_in_some_from_200_metric_in_some"], tmp_path / "some")


@pytest.mark.parametrize("name", sorted(KEY_ERRORS))
def test_where_tf_estimator_raised_a_bare_key_error(name: str, tmp_path: Path):
    case = RULES[name]
    assert case["error"]["type"] == "KeyError"
    metric = case["rules"][0]["metric"]
    newest = max(case["evaluations"], key=lambda record: record[0])[1]
    if metric in newest:
        stops(case, tmp_path)  # only older evaluations lack it
    else:
        with pytest.raises(HookError, match=f"has no metric '{metric}'") as raised:
            stops(case, tmp_path)
        assert all(repr(name) in str(raised.value) for name in newest)


@pytest.mark.parametrize("name", sorted(PREDICATES))
def test_when_a_predicate_is_asked(name: str):
    case = PREDICATES[name]
    steps: list[int] = []
    run = FakeRun(step=case["resume_from"] or 0)

    def should_stop() -> bool:
        steps.append(run.step)
        return len(steps) == case["stop_at_call"]

    hook = eh.make_early_stopping_hook(SimpleNamespace(eval_dir=str), should_stop, run_every_steps=case["every"])
    drive([hook], steps=case["global_step"] - run.step if case["stop_at_call"] == 100 else 1000, run=run)
    assert run.step == case["global_step"]
    asked, step = [], case["resume_from"] or 0
    for line in case["trace"]:
        step += line == "counted.before_run"
        asked += [step] if line == "asked" else []
    if case["every"] == 1:  # its hook read the step during the update, and sometimes saw the old one
        assert set(asked) <= set(steps)
    else:
        assert steps == asked


@pytest.mark.parametrize("name", sorted(IN_MEMORY))
def test_in_memory_evaluator(name: str):
    case = IN_MEMORY[name]
    settings = case["in_memory_evaluator"]
    start, evaluated = settings["resume_from"] or 0, []
    run = FakeRun(step=start)
    calls: list[dict[str, Any]] = []

    def evaluate(**arguments: Any) -> None:
        calls.append(arguments)
        evaluated.append(run.step)

    estimator = SimpleNamespace(eval_dir=str, evaluate=evaluate)
    hook = eh.InMemoryEvaluatorHook(
        estimator, list, steps=settings["steps"], name=settings["name"], every_n_iter=settings["every_n_iter"]
    )
    drive([hook], steps=settings["max_steps"] - start, run=run)
    recorded = [step for step, _ in case["evaluations"]]
    assert evaluated == list(dict.fromkeys(recorded))  # it evaluated a last step that was due twice
    assert calls[0] == {"input_fn": list, "steps": settings["steps"], "hooks": None, "name": settings["name"]}


def test_the_refusals():
    for name, make in {
        "refused_both_intervals": lambda: eh.make_early_stopping_hook(
            SimpleNamespace(eval_dir=str), lambda: True, run_every_secs=60, run_every_steps=1
        ),
        "refused_should_stop_not_callable": lambda: eh.make_early_stopping_hook(SimpleNamespace(eval_dir=str), 3),
    }.items():
        recorded = CASES[name]["error"]
        with pytest.raises((ValueError, TypeError)) as raised:
            make()
        assert isinstance(raised.value, {"ValueError": ValueError, "TypeError": TypeError}[recorded["type"]])
        assert str(raised.value) == recorded["message"]
    assert CASES["refused_in_memory_every_0"]["error"]["type"] == "ValueError"
    with pytest.raises(ValueError, match=r"^InMemoryEvaluatorHook: every_n_iter must be at least 1"):  # with the hook
        eh.InMemoryEvaluatorHook(SimpleNamespace(eval_dir=str), list, every_n_iter=0)
    # tf.estimator refused its own default with run_every_steps, and a hook that is added to a resumed run.
    assert CASES["refused_steps_with_default_secs"]["error"] is not None
    assert CASES["refused_added_to_a_resumed_run"]["error"] is not None
    eh.make_early_stopping_hook(SimpleNamespace(eval_dir=str), lambda: True, run_every_steps=1)


def test_a_call_killed_between_its_first_save_and_its_first_evaluation_evaluates_when_resumed() -> None:
    calls: list[str | None] = []
    estimator: Any = SimpleNamespace(eval_dir=str, evaluate=lambda **arguments: calls.append(arguments["name"]))
    run: Any = SimpleNamespace(step=0, resumed=True, config=ec.RunConfig())
    for evaluated, expected in ((None, ["first"]), (0, [])):
        calls.clear()
        hook = eh.InMemoryEvaluatorHook(estimator, lambda: [], name="first", every_n_iter=5)
        hook.restore({"base": 0, "evaluated": evaluated})
        hook.after_create(run)
        assert calls == expected
