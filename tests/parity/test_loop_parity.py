"""Tests of the loop against the real tf.estimator, scenario by scenario, except for the rules in differences.py."""

import collections
import json

import pytest

import estimator_core as ec
from tests.parity import compare, core_scenario, data, differences

RECORDINGS = {
    name: {case: content for case, content in data.load(name).items() if "calls" in content}
    for name in ("training", "hook_order", "train_and_evaluate", "evaluate_predict", "standard_hooks")
}


def is_run(recording, case):
    return not any(recording == left and case.startswith(right) for left, right in differences.NOT_RUN)


def cases():
    """Yields all scenarios.

    Every tenth, known faults and the first two for each rule are quick. The others are slow.
    """
    met = collections.Counter()
    for recording, content in RECORDINGS.items():
        for number, case in enumerate(filter(lambda case: is_run(recording, case), content)):
            fault = differences.FAULTS.get((recording, case))
            _, rules = differences.expected_of(recording, case, content)
            quick = fault or number % 10 == 0 or any(met[rule] < 2 for rule in rules)
            met.update(rules if quick else ())
            marks = [pytest.mark.xfail(strict=True, reason=fault)] if fault else []
            yield pytest.param(recording, case, id=f"{recording}-{case}", marks=marks if quick else [pytest.mark.slow])


@pytest.mark.parametrize(("recording", "case"), list(cases()))
def test_scenario(recording, case, tmp_path, compilation_cache, first_calls):
    expected, _ = differences.expected_of(recording, case, RECORDINGS[recording])
    seen = core_scenario.run(RECORDINGS[recording][case], tmp_path, first_calls)
    assert compare.scenario_mismatches(expected, seen) == []


def test_every_rule_changes_some_scenario():
    used = {
        name
        for recording, content in RECORDINGS.items()
        for case in filter(lambda case: is_run(recording, case), content)
        for name in differences.expected_of(recording, case, content)[1]
    }
    assert used == {name for name, _, _ in differences.RULES}


def test_every_entry_names_a_scenario():
    recorded = [(recording, case) for recording, content in RECORDINGS.items() for case in content]
    for recording, start in differences.NOT_RUN:
        assert any(recording == left and right.startswith(start) for left, right in recorded)
    assert set(differences.FAULTS) <= set(recorded)


def test_an_input_with_a_position_goes_on_where_it_was(tmp_path):
    """In tf.estimator, the second call starts its input again (`steps_add_up`).

    Here, two calls of ten steps equal twenty.
    """
    x, y = core_scenario.rows(24)
    source = ec.inputs.numpy_input_fn({"x": x}, y, batch_size=4, num_epochs=None, shuffle=False)
    for _ in range(2):
        config = ec.RunConfig(model_dir=str(tmp_path), default_hooks=False)
        ec.Estimator(core_scenario.model({}, None), config=config).train(source, steps=10)
    weights = {name: ec.load_variables(ec.latest_checkpoint(str(tmp_path)))[name] for name in ("w", "b")}
    uninterrupted = {name: RECORDINGS["training"]["max_on_cadence"]["weights"][name] for name in ("w", "b")}
    restarted = {name: RECORDINGS["training"]["steps_add_up"]["weights"][name] for name in ("w", "b")}
    assert list(compare.mismatches(uninterrupted, weights)) == []
    assert list(compare.mismatches(restarted, weights)) != []


def test_recorded_checkpoint_path_is_that_of_the_evaluated_step(tmp_path):
    scenario = RECORDINGS["train_and_evaluate"]["reference"]
    core_scenario.run(scenario, tmp_path)
    lines = (tmp_path / "model" / "eval" / "metrics.jsonl").read_text().splitlines()
    evaluations = [json.loads(line) for line in lines]
    named = [(item["global_step"], item["checkpoint_path"]) for item in evaluations if item["checkpoint_path"]]
    assert [step for step, path in named] == [int(path.rpartition("/")[2]) for _, path in named]


def test_defaults_that_differ_from_tf_estimator():
    spec = ec.EvalSpec(lambda: iter(()))
    assert (spec.steps, spec.throttle_secs) == (None, 0)  # 100 and 600 in tf.estimator


def test_a_comparison_sees_each_kind_of_difference():
    assert list(compare.mismatches({"a": [1, 2.0, "nan"]}, {"a": [1, 2.000001, float("nan")]})) == []
    for seen in (
        {"a": [1, 2.1, float("nan")]},
        {"a": [1, 2.0, 3.0]},
        {"a": [1, 2.0]},
        {"a": [2, 2.0, float("nan")]},
        {},
    ):
        assert list(compare.mismatches({"a": [1, 2.0, "nan"]}, seen))
