"""Where this framework does something else than tf.estimator on purpose, each with its name and reason.

A *rule* turns what tf.estimator did into what is expected here, for every recorded scenario it applies to. The
tests compare the result exactly, so a rule that no longer holds fails; `test_loop_parity.py` also fails for a rule that
changes nothing in any recording.
"""

from tests.parity import rules_of_results, rules_of_traces  # noqa: F401  registers the rules, in this order
from tests.parity.rules import RULES, expected_of

__all__ = ["FAULTS", "NOT_RUN", "RULES", "expected_of"]

#: Scenarios that cannot be run here, with the reason.
NOT_RUN = {
    ("standard_hooks", "global_step_waiter"): "GlobalStepWaiterHook is in estimator-hooks",
    ("standard_hooks", "final_ops"): "FinalOpsHook is in estimator-hooks",
    ("hook_order", "train_raise_OutOfRangeError"): "OutOfRangeError is TensorFlow's own class",
    (
        "train_and_evaluate",
        "eval_steps_default_on_endless_input",
    ): "EvalSpec.steps is None unless given: the whole input",
}

#: Scenarios in which this framework is wrong at present: what is wrong. An entry that holds no longer fails its test.
FAULTS: dict[tuple[str, str], str] = {}
