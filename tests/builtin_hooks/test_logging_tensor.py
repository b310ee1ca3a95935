"""Tests of LoggingTensorHook: lines, cadence, names and resuming."""

import logging
import re
from pathlib import Path

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._builtin_hooks.logging_tensor import LoggingTensorHook
from estimator_core.errors import HookError
from estimator_core.inputs import numpy_input_fn
from tests.builtin_hooks.driver import drive


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="estimator_core")

    def read() -> list[str]:
        messages = [record.getMessage() for record in caplog.records if "=" in record.getMessage()]
        caplog.clear()
        return [re.sub(r" \(\d+\.\d{3} sec\)", " (t)", message) for message in messages]

    return read


def test_lines(lines):
    drive([LoggingTensorHook(["loss", "step", "rate"], every_n_iter=2)], steps=5, outputs={"rate": lambda step: 0.5})
    assert lines() == [
        "loss = 0.5, step = 1, rate = 0.5",
        "loss = 0.25, step = 3, rate = 0.5 (t)",
        "loss = 0.16666667, step = 5, rate = 0.5 (t)",
    ]


def test_labels_are_sorted(lines):
    drive([LoggingTensorHook({"z": "loss", "a": "step"}, every_n_iter=1)], steps=1)
    assert lines() == ["a = 1, z = 0.5"]


def test_the_first_local_step_is_logged(lines):
    drive([LoggingTensorHook(["step"], every_n_iter=4)], steps=9, start=7)
    assert lines() == ["step = 8", "step = 12 (t)", "step = 16 (t)"]


@pytest.mark.parametrize("k", [1, 4, 50])
def test_no_line_is_missed_with_several_steps_per_dispatch(lines, k: int):
    drive([LoggingTensorHook(["loss", "step"], every_n_iter=7)], steps=30, k=k)
    assert [int(line.split("step = ")[1].split()[0]) for line in lines()] == [1, 8, 15, 22, 29]


def test_formatter(lines):
    hook = LoggingTensorHook(["loss"], every_n_iter=1, formatter=lambda values: f"L={values['loss']:.1f}")
    drive([hook], steps=1)
    assert lines() == ["L=0.5"]


@pytest.mark.parametrize("k", [1, 3])
def test_at_end(lines, k: int):
    drive([LoggingTensorHook(["loss", "step"], at_end=True)], steps=4, k=k)
    assert lines() == ["loss = 0.2, step = 4"]
    drive([LoggingTensorHook(["step"], every_n_iter=3, at_end=True)], steps=4, k=k)
    assert lines() == ["step = 1", "step = 4 (t)"]


@pytest.mark.parametrize("k", [1, 3])
def test_at_end_without_outputs(lines, k: int):
    drive([LoggingTensorHook(["step"], at_end=True)], steps=4, start=2, k=k)
    drive([LoggingTensorHook({"s": "global_step"}, every_n_iter=3, at_end=True)], steps=5, k=k)
    assert lines() == ["step = 6", "s = 1", "s = 4 (t)", "s = 5"]


def test_the_global_step_of_an_evaluation_is_that_of_its_weights(lines, tmp_path: Path):
    def model_fn(features, mode):
        loss = (features["x"] * ec.get_variable("w", ())).sum()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1), predictions=features)

    input_fn = numpy_input_fn({"x": np.ones(6, np.float32)}, batch_size=2, shuffle=False)
    estimator = ec.Estimator(model_fn, tmp_path).train(input_fn, steps=2)
    lines()
    hook = LoggingTensorHook(["step", "global_step"], every_n_iter=2)
    estimator.evaluate(input_fn, hooks=[hook])
    list(estimator.predict(input_fn, hooks=[hook]))
    found = [line for line in lines() if line.startswith("step")]
    assert found == ["step = 1, global_step = 2", "step = 3, global_step = 2 (t)"] * 2


def test_at_end_after_no_step(lines):
    drive([LoggingTensorHook(["loss"], at_end=True)], steps=0)
    drive([LoggingTensorHook(["step"], at_end=True)], steps=0)
    assert lines() == []


def test_arrays(lines):
    hook = LoggingTensorHook(["ids"], every_n_iter=1)
    driven = drive([hook], steps=1, outputs={"ids": lambda step: np.array([1, 2])}, kinds={"ids": "tensor"})
    assert lines() == ["ids = [1 2]"]
    assert driven.run.fetches == {"ids"}


@pytest.mark.parametrize("killed", [1, 4, 5, 7])
def test_resume_gives_the_lines_of_an_uninterrupted_run(lines, killed: int):
    drive([LoggingTensorHook(["step"], every_n_iter=4)], steps=14)
    expected = [line.removesuffix(" (t)") for line in lines()]
    states = drive([LoggingTensorHook(["step"], every_n_iter=4)], steps=killed).states
    drive([LoggingTensorHook(["step"], every_n_iter=4)], steps=14 - killed, start=killed, resume=states)
    assert [line.removesuffix(" (t)") for line in lines()] == expected


def test_a_hook_used_in_a_second_call_starts_anew(lines):
    hook = LoggingTensorHook(["step"], every_n_iter=4)
    drive([hook], steps=6)
    lines()
    drive([hook], steps=6, start=6)
    assert lines() == ["step = 7", "step = 11 (t)"]


def test_unknown_name():
    with pytest.raises(HookError, match="no output 'los'"):
        drive([LoggingTensorHook(["los"], every_n_iter=1)], steps=1)


def test_a_name_missing_in_one_dispatch_is_skipped_with_one_warning(lines, caplog: pytest.LogCaptureFixture):
    hook = LoggingTensorHook(["loss", "sometimes"], every_n_iter=1)
    drive([hook], steps=4, outputs={"sometimes": lambda step: 1.0 if step % 2 else np.nan})
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "step 2 has no output 'sometimes'" in warnings[0].getMessage()
    assert lines()[1] == "loss = 0.33333334 (t)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "^LoggingTensorHook: one of every_n_iter, every_n_secs and at_end must be provided."),
        ({"every_n_iter": 1, "every_n_secs": 1.0}, "exactly one of every_n_secs and every_n_iter"),
        ({"every_n_iter": 1, "every_n_secs": 1.0, "at_end": True}, "exactly one of every_n_secs and every_n_iter"),
        ({"every_n_iter": 0}, "^LoggingTensorHook: every_n_iter must be at least 1"),
        ({"every_n_secs": 0}, "^LoggingTensorHook: every_n_secs must be > 0"),
    ],
)
def test_refused(arguments: dict, message: str):
    with pytest.raises(ValueError, match=message):
        LoggingTensorHook(["loss"], **arguments)


def test_arrays_instead_of_names_are_refused():
    with pytest.raises(TypeError, match="hooks refer to values by name, given: ndarray"):
        LoggingTensorHook([np.zeros(1)], every_n_iter=1)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="give a list of names"):
        LoggingTensorHook("loss", every_n_iter=1)
