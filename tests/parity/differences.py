"""The deliberate differences between this framework and tf.estimator, each with its name and reason.

A *rule* changes the recorded behaviour of tf.estimator into the expected behaviour here, for every recorded scenario
that it applies to. The tests compare the result exactly, so a rule that no longer holds fails. `test_loop_parity.py`
also fails for a rule that does not change any recording.
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

#: Scenarios in which this framework is wrong at present, and the fault. An entry whose fault is fixed fails its test.
FAULTS: dict[tuple[str, str], str] = {}
