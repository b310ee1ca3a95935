"""Tests of the timer and of the arguments of the built-in hooks against tf.estimator."""

import time
from unittest import mock

import pytest

from estimator_core import builtin_hooks
from estimator_core.errors import ArgumentError
from tests.parity import compare, data

CASES = data.load("standard_hooks")
TIMERS = [name for name in CASES if name.startswith("timer_")]
REFUSED = [name for name in CASES if name.startswith("refused_")]

#: Refused by tf.estimator, accepted here, with the reason.
ACCEPTED_HERE = {"refused_summary_no_op": "SummarySaverHook writes the run's summaries unless told which"}
#: Arguments that do not exist here.
GONE = {"CheckpointSaverHook": {"checkpoint_dir"}, "SummarySaverHook": {"summary_op"}}
#: The message begins differently, with the reason.
OTHER_WORDS = {name: "names the hook" for name in REFUSED if name not in ACCEPTED_HERE}


@pytest.mark.parametrize("name", TIMERS)
def test_timer(name):
    case = CASES[name]["timer"]
    timer = builtin_hooks.SecondOrStepTimer(**case["arguments"])
    for step, second, triggered, returned, last in case["calls"]:
        with mock.patch.object(time, "monotonic", return_value=1000.0 + second):
            assert timer.should_trigger_for_step(step) == triggered
            if triggered:
                assert list(timer.update_last_triggered_step(step)) == pytest.approx(returned)
        assert timer.last_triggered_step() == last
    timer.reset()
    assert timer.last_triggered_step() == case["after_reset"]


def made(name):
    case = CASES[name]
    gone = GONE.get(case["class"], set())
    arguments = {key: value for key, value in case["arguments"].items() if key not in gone}
    return getattr(builtin_hooks, case["class"])(**arguments)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_arguments(name):
    if name in ACCEPTED_HERE:
        assert made(name).next_step(0).step == 1
        return
    with pytest.raises(ArgumentError) as refused:
        made(name)
    searched = compare.first_words(CASES[name]["error"]["message"])
    assert (compare.first_words(str(refused.value)) == searched) != (name in OTHER_WORDS)


def test_every_difference_names_a_case():
    assert {*ACCEPTED_HERE, *OTHER_WORDS} <= set(REFUSED)
