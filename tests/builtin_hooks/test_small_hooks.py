"""Tests of StopAtStepHook and NanTensorHook."""

import numpy as np
import pytest

from estimator_core._builtin_hooks.nan_tensor import NanTensorHook
from estimator_core._builtin_hooks.stop_at_step import StopAtStepHook
from estimator_core.errors import HookError, NanLossDuringTrainingError
from estimator_core.hooks import Wake
from tests.builtin_hooks.driver import drive


@pytest.mark.parametrize("k", [1, 4, 50])
@pytest.mark.parametrize(("arguments", "stop"), [({"last_step": 7}, 7), ({"num_steps": 7}, 10)])
def test_stop_at_step_is_exact(arguments: dict[str, int], stop: int, k: int):
    driven = drive([StopAtStepHook(**arguments)], steps=100, start=3, k=k)
    assert driven.run.step == stop
    assert driven.stopped == f"reached step {stop}"


def test_a_run_that_is_already_there_makes_no_step():
    assert drive([StopAtStepHook(last_step=7)], steps=100, start=9).run.step == 9


def test_num_steps_of_an_interrupted_call_are_not_counted_again():
    states = drive([StopAtStepHook(num_steps=10)], steps=4, start=2).states
    assert drive([StopAtStepHook(num_steps=10)], steps=100, start=6, resume=states).run.step == 12
    hook = StopAtStepHook(num_steps=10)
    assert drive([hook], steps=100).run.step == 10
    assert drive([hook], steps=100, start=10).run.step == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "StopAtStepHook: one of num_steps or last_step must be specified."),
        ({"num_steps": 1, "last_step": 1}, "StopAtStepHook: only one of num_steps or last_step can be specified."),
    ],
)
def test_stop_at_step_refused(arguments: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        StopAtStepHook(**arguments)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", [1, 5])
def test_nan_names_the_first_bad_step(bad: float, k: int):
    outputs = {"loss": lambda step: bad if step >= 13 else 1.0}
    with pytest.raises(NanLossDuringTrainingError, match=r"NaN loss during training\..*at step 13") as raised:
        drive([NanTensorHook()], steps=40, k=k, outputs=outputs)
    assert raised.value.step == 13
    assert any("NanTensorHook from estimator-core" in note for note in raised.value.__notes__)


def test_nan_requests_a_stop(caplog: pytest.LogCaptureFixture):
    outputs = {"loss": lambda step: np.nan if step == 13 else 1.0}
    driven = drive([NanTensorHook("loss", fail_on_nan_loss=False)], steps=1000, outputs=outputs)
    assert driven.stopped == "loss = not finite at step 13"
    assert driven.run.step == 100
    (told,) = [record for record in caplog.records if "Model diverged" in record.message]
    assert told.levelname == "WARNING"


def test_nan_in_the_last_steps_is_not_missed():
    with pytest.raises(NanLossDuringTrainingError, match="at step 3"):
        drive([NanTensorHook()], steps=3, outputs={"loss": lambda step: np.nan if step == 3 else 1.0})


def test_finite_losses_pass():
    assert drive([NanTensorHook()], steps=20).run.step == 20


@pytest.mark.parametrize("k", [1, 5])
def test_nan_of_another_output(k: int):
    outputs = {"activation": lambda step: np.inf if step >= 13 else 1.0}
    with pytest.raises(NanLossDuringTrainingError, match=r"activation is inf at step 13"):
        drive([NanTensorHook("activation")], steps=40, k=k, outputs=outputs)


def test_nan_forces_few_boundaries():
    assert NanTensorHook().next_step(0) == Wake(step=100, within=99, joins=True)
    assert NanTensorHook("activation").next_step(0) is None


def test_nan_of_an_unknown_output():
    with pytest.raises(HookError, match="no output 'los'"):
        drive([NanTensorHook("los")], steps=1)
    with pytest.raises(TypeError, match="hooks refer to values by name"):
        NanTensorHook(np.zeros(1))  # type: ignore[arg-type]
