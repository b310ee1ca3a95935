"""The checkpoint-policy suite passes sound policies and catches broken ones."""

import pytest

from estimator_core.builtin_hooks import CheckpointSaverHook
from estimator_core.hooks import CheckpointPolicy
from estimator_core.testing import CheckpointPolicySuite


class TestTheDefault(CheckpointPolicySuite):
    def make(self):
        return CheckpointSaverHook(save_steps=5)


class TestByTheClock(CheckpointPolicySuite):
    def make(self):
        return CheckpointSaverHook(save_secs=600)


class TestStartAndEnd(CheckpointPolicySuite):
    def make(self):
        return CheckpointPolicy()


@pytest.mark.slow
def test_broken_policies_are_caught(assert_each_is_caught):
    assert_each_is_caught("checkpoint_policies")
