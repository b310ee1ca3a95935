"""Tests of RunConfig and TF_CONFIG against the values in tf.estimator."""

import json

import pytest

import estimator_core as ec
from tests.parity import compare, data

CASES = data.load("run_config")
GONE = "session_creation_timeout_secs"  # every RunConfig of tf.estimator has it; here sessions do not exist

#: Accepted by tf.estimator, refused here, with the reason.
REFUSED_HERE = {"arguments_save_steps_0": "there it saves at every step; None switches checkpoints off"}

#: Refused by both, here with an error of another kind, with the reason.
OTHER_KIND = {
    "environment_index_not_a_number": "a wrong type",
    "environment_not_json": "the error is ours, a ValueError; there it is json's own",
    "arguments_seed_text": "a wrong type",
    "arguments_seed_float": "a wrong type",
}

#: Refused by both, but the message begins differently, with the reason.
OTHER_WORDS = {
    "environment_index_not_a_number": "there int() complains",
    "environment_model_dir_empty": "says where the empty name comes from in a sentence of its own",
    "environment_not_json": "names the variable",
    "arguments_device_fn_not_callable": "says that the argument is gone",
    "arguments_protocol_unknown": "says that the argument is gone",
    "arguments_session_config_text": "says that the argument is gone",
    "arguments_session_timeout_0": "says that the argument is gone",
    "arguments_unknown": "lists the arguments",
}


def configured(name, monkeypatch):
    """Makes the RunConfig of a case, and returns ``(config, None)`` or ``(None, error)``."""
    case = CASES[name]
    if "tf_config" in case:
        given = case["tf_config"]
        monkeypatch.setenv("TF_CONFIG", given if isinstance(given, str) else json.dumps(given))
    arguments = {"model_dir": case["model_dir"]} if "model_dir" in case else case.get("arguments", {})
    try:
        config = ec.RunConfig(**arguments)
        return (config.replace(**case["replace"]) if "replace" in case else config), None
    except ec.EstimatorError as error:
        return None, error


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case["error"]])
def test_accepted_with_the_same_values(name, monkeypatch):
    config, error = configured(name, monkeypatch)
    if name in REFUSED_HERE:
        assert isinstance(error, ValueError)
        return
    assert error is None
    case = CASES[name]
    if "values" in case:
        expected = {field: value for field, value in case["values"].items() if field != GONE}
        assert {field: getattr(config, field) for field in expected} == expected
        return
    expected = dict(case["properties"])
    assert config.model_dir == expected.pop("model_dir")
    assert {role: list(hosts) for role, hosts in config.cluster.cluster.items()} == expected.pop("cluster_spec")
    assert {field: getattr(config.cluster, field) for field in expected} == expected


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["error"]])
def test_refused_with_the_same_kind_and_first_words(name, monkeypatch):
    _, error = configured(name, monkeypatch)
    recorded = CASES[name]["error"]
    kinds = [kind.__name__ for kind in type(error).__mro__]
    assert error is not None
    assert (recorded["type"] in kinds) != (name in OTHER_KIND)
    assert (compare.first_words(str(error)) == compare.first_words(recorded["message"])) != (name in OTHER_WORDS)


def test_every_difference_names_a_case():
    assert {name for name in REFUSED_HERE if CASES[name]["error"] is None} == set(REFUSED_HERE)
    assert all(CASES[name]["error"] for name in (*OTHER_KIND, *OTHER_WORDS))
