"""The suite for checkpoint policies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from estimator_core.checkpoint import all_checkpoints, checkpoint_step
from estimator_core.hooks import CheckpointPolicy, Hook, Run, StepOutputs, Wake
from estimator_testing.fake_run import FakeRun
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite
from estimator_testing.tiny import tiny_estimator, tiny_input_fn

STEPS = 24


class CheckpointPolicySuite(Suite):
    """Proves that a policy requests later steps and continues after a resume. Subclass it and implement `make`.

    Example:
        >>> from estimator_core.builtin_hooks import CheckpointSaverHook
        >>> class TestOften(CheckpointPolicySuite):
        ...     def make(self):
        ...         return CheckpointSaverHook(save_steps=5)
    """

    def make(self) -> CheckpointPolicy:
        """Returns a new policy that saves a few times in 24 steps, or by the clock. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def test_is_a_fresh_policy(self) -> None:
        """`make` returns a CheckpointPolicy, a new one each time."""
        policy = self.make()
        assert isinstance(policy, CheckpointPolicy), f"{policy!r} is not a CheckpointPolicy"
        assert self.make() is not policy

    def test_next_step_is_ahead(self) -> None:
        """`next_step(step)` is None, an int after `step` or a `Wake`, from any step on, also when it is repeated."""
        for first in (0, 7, 1000):
            policy, run = self.make(), FakeRun(step=first, first_step=first)
            policy.at_start(run)
            asked = list(_saves(policy, run, first, first + STEPS))
            assert asked == sorted(set(asked))

    def test_state_is_json_and_survives(self) -> None:
        """A policy that restores the state of another requests the same steps, at any moment. The state is JSON."""
        policy, run = self.make(), FakeRun()
        policy.at_start(run)
        for step in _saves(policy, run, 0, STEPS):
            memory = json.loads(json.dumps(dict(policy.state())))
            again, resumed = self.make(), FakeRun(step=step, first_step=step, resumed=True)
            if memory:
                again.restore(memory)
            again.at_start(resumed)
            found = json.loads(json.dumps(dict(again.state())))
            assert found == memory, f"at step {step} it remembers {found} instead of {memory}"

    def test_a_run_that_breaks_saves_as_one_that_does_not(self, tmp_path: Path) -> None:
        """A run that fails and is restarted saves at the same steps as an uninterrupted run."""
        whole, broken = tmp_path / "whole", tmp_path / "broken"
        self._train(whole)
        with pytest.raises(BrokenOffError):
            self._train(broken, Breaks())
        self._train(broken)
        by_clock = isinstance(self.make().next_step(0), Wake)
        assert by_clock or _saved(broken) == _saved(whole), f"{_saved(broken)} are saved instead of {_saved(whole)}"

    def test_another_hash_seed(self, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, it requests the same steps."""
        policy, run = self.make(), FakeRun()
        policy.at_start(run)
        answers = [_step(policy.next_step(step)) for step in range(STEPS)]
        same_under_another_seed(request, [answers, sorted(policy.state().items())])

    def test_leaves_nothing_behind(self) -> None:
        """After a run no thread runs, no file is open, and the state of the process is as before."""

        def use(policy: CheckpointPolicy) -> None:
            run = FakeRun()
            policy.at_start(run)
            for _ in _saves(policy, run, 0, STEPS):
                policy.state()
            policy.at_end(run)

        kept = [self.make()]
        with loading():
            use(kept[0])
        with leaving_nothing("after a run, the policy"):
            kept.append(self.make())
            use(kept[1])

    def _train(self, model_dir: Path, *hooks: Hook) -> None:
        estimator = tiny_estimator(model_dir, keep_checkpoint_max=None, default_hooks=False)
        estimator.train(tiny_input_fn(), max_steps=STEPS, hooks=[Given(self.make()), *hooks])


class Given(CheckpointPolicy, Hook):
    """Wraps a policy as one of the hooks of a call.

    Args:
        policy: the policy that decides.
    """

    name: ClassVar[str | None] = "Given"

    def __init__(self, policy: CheckpointPolicy) -> None:
        self._policy = policy

    def at_start(self, run: Run) -> bool:
        """Returns whether the policy saves at the start."""
        return self._policy.at_start(run)

    def next_step(self, step: int) -> int | Wake | None:
        """Returns the next step of the policy."""
        return self._policy.next_step(step)

    def saved(self, run: Run, step: int) -> None:
        """Tells the policy about a save."""
        self._policy.saved(run, step)

    def at_end(self, run: Run) -> bool:
        """Returns whether the policy saves at the end."""
        return self._policy.at_end(run)

    def state(self) -> Mapping[str, Any]:
        """Returns the state of the policy."""
        return self._policy.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state of the policy."""
        self._policy.restore(state)


class BrokenOffError(Exception):
    """The error that ends the run."""


class Breaks(Hook):
    """Ends a run in the middle."""

    def next_step(self, step: int) -> int | None:
        """Returns the step after the middle."""
        return STEPS // 2 + 1 if step <= STEPS // 2 else None

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Raises the error."""
        raise BrokenOffError(f"at step {step}")


def _saves(policy: CheckpointPolicy, run: FakeRun, first: int, last: int) -> Iterator[int]:
    """Yields the steps at which a policy saves in a loop. A policy with a time limit is due at each step."""
    step = first
    while True:
        at = _step(policy.next_step(step))
        assert at == _step(policy.next_step(step)), f"next_step({step}) answers differently the second time"
        for later in (step, step + 1, step + 100):
            due = _step(policy.next_step(later))
            ahead = due is None or (isinstance(due, int) and not isinstance(due, bool) and due > later)
            assert ahead, f"next_step({later}) gave {due!r}"
        step = step + 1 if at is None else at
        if step > last:
            return
        run.step = step
        policy.saved(run, step)
        yield step


def _step(answer: int | Wake | None) -> int | None:
    return answer.step if isinstance(answer, Wake) else answer


def _saved(model_dir: Path) -> list[int]:
    return sorted(checkpoint_step(path) for path in all_checkpoints(str(model_dir)))
