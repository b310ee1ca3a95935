"""A test of a suite is replaced only with a stated reason."""

import pytest

from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook
from estimator_testing import HookSuite, Suite, overrides


def test_replacing_a_test_without_a_reason_is_refused():
    with pytest.raises(ArgumentError, match=r"Quiet replaces test_state_is_a_copy .* @overrides"):

        class Quiet(HookSuite):
            def test_state_is_a_copy(self):
                pass


def test_removing_a_test_is_refused():
    with pytest.raises(ArgumentError, match="replaces test_state_is_a_copy"):

        class Removed(HookSuite):
            test_state_is_a_copy = None


def test_a_mixin_does_not_help():
    class Mixin:
        def test_state_is_a_copy(self):
            pass

    with pytest.raises(ArgumentError, match="Mixin replaces test_state_is_a_copy"):

        class Mixed(Mixin, HookSuite):
            pass


def test_a_subclass_of_a_subclass_is_held_to_it_too():
    class First(HookSuite):
        def make(self):
            return Hook()

    with pytest.raises(ArgumentError, match="Second replaces test_is_a_fresh_hook"):

        class Second(First):
            def test_is_a_fresh_hook(self):
                pass


def test_a_reason_is_enough_and_an_empty_one_is_none():
    class Reasoned(HookSuite):
        @overrides("it has no state")
        def test_state_is_a_copy(self):
            pass

    assert issubclass(Reasoned, Suite)
    with pytest.raises(ArgumentError, match="needs a reason"):
        overrides("  ")


def test_adding_tests_and_replacing_helpers_is_free():
    class More(HookSuite):
        def test_of_my_own(self):
            pass

        def outputs(self):
            return {}

    assert More.test_of_my_own is not None
