"""Rules that change a recorded outcome of tf.estimator into the expected outcome here (see differences.py)."""

import copy

RULES = []

#: A value that is not compared.
ANY = "any value"


def rule(reason):
    """Registers a rule ``(recording, name, scenario, expected) -> None`` that edits ``expected``."""

    def register(function):
        RULES.append((function.__name__, reason, function))
        return function

    return register


def expected_of(recording, name, cases):
    """Returns the expected outcome of a recorded scenario here, and the names of the rules that changed it."""
    scenario = cases[name]
    expected = copy.deepcopy({key: scenario[key] for key in ("results", "events", "weights")})
    used = []
    for rule_name, _, function in RULES:
        before = copy.deepcopy(expected)
        function(recording, name, scenario, expected, cases)
        if expected != before:
            used.append(rule_name)
    return expected, used


def each_call(scenario, expected):
    return zip(scenario["calls"], expected["results"], strict=True)
