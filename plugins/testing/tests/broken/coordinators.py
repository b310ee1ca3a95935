"""Coordinators that break their contract, each in one way. `fails` names the tests that catch it."""

from typing import ClassVar

from estimator_core.testing import CoordinatorSuite


class Suite(CoordinatorSuite):
    fails = ()
    connects = "plugins.testing.tests.sound_coordinator:connect"
    silence = 2.0
    start = 4.0


class TestUnordered(Suite):
    fails = ("test_all_agree_in_order",)
    options: ClassVar = {"broken": ["unordered"]}


class TestSticky(Suite):
    fails = ("test_all_agree_in_order",)
    options: ClassVar = {"broken": ["sticky"]}


class TestPatient(Suite):
    fails = ("test_a_late_process_is_named",)
    options: ClassVar = {"broken": ["patient"]}


class TestSpeechless(Suite):
    fails = ("test_a_failed_process_is_named",)
    options: ClassVar = {"broken": ["speechless"]}


class TestDeaf(Suite):
    fails = ("test_a_killed_process_is_named", "test_a_frozen_process_is_named")
    options: ClassVar = {"broken": ["deaf"]}


class TestNervous(Suite):
    fails = ("test_who_ends_is_lost_only_to_who_waits",)
    options: ClassVar = {"broken": ["nervous"]}


class TestHasty(Suite):
    fails = ("test_process_0_may_end_first",)
    options: ClassVar = {"broken": ["hasty"]}


class TestForgetful(Suite):
    fails = ("test_who_has_ended_is_not_the_one_who_was_killed",)
    options: ClassVar = {"broken": ["forgetful"]}
    start = 20.0
