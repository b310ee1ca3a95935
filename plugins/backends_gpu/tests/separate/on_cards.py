"""What only a card can show. Session `gpu` of the noxfile; `CARDS=cpu` tries the programs where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_backends_gpu import FIGURES, GPUBackend
from estimator_backends_gpu.targets import TARGETS
from estimator_core.backends import Available
from estimator_plan import find_topology, plan_training
from plugins.backends_gpu.tests.separate.bound_programs import transformer
from plugins.backends_gpu.tests.separate.card_program import VOCABULARY, batches

CARDS = os.environ.get("CARDS", "gpu")
SMALL = CARDS != "gpu"
PROGRAM = "plugins.backends_gpu.tests.separate.card_program"
FIGURES_FILE = os.environ.get("CARDS_FIGURES")
needs_card = pytest.mark.skipif(SMALL, reason="only a card can show it: CARDS=gpu")


@cache
def trained(folder: Path, *, precision: str = "float32", flags: str = "on", steps: int = 30) -> dict[str, Any]:
    """What the program prints, from a process of its own: flags cannot change in one that has started jax."""
    sizes = ["--width", "64", "--batch", "4"] if SMALL else []
    arguments = ["--backend", CARDS, "--model-dir", str(folder), "--precision", precision, "--flags", flags]
    ended = subprocess.run(
        [sys.executable, "-m", PROGRAM, *arguments, "--steps", str(steps), *sizes],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    if FIGURES_FILE:
        with Path(FIGURES_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps({name: found[name] for name in found if name != "losses"}) + "\n")
    return found


@needs_card
def test_the_backend_sees_the_cards_and_knows_their_figures() -> None:
    backend = GPUBackend()
    assert isinstance(backend.probe(), Available)
    estimator = ec.Estimator(transformer(64, 2), config=ec.RunConfig(backend="auto", default_hooks=False))
    assert estimator.config.backend == "auto"
    for device in backend.devices():
        assert device.platform == "gpu"
        assert device.device_kind in FIGURES, f"add {device.device_kind} to FIGURES"


@needs_card
def test_doctor_finds_no_fault_on_the_cards() -> None:
    command = [str(Path(sys.executable).with_name("estimator")), "doctor", "--devices"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_float32_learns(tmp_path: Path) -> None:
    losses = trained(tmp_path)["losses"]
    assert np.mean(losses[-3:]) < 0.99 * np.mean(losses[:3])


def test_bfloat16_learns_as_float32_does(tmp_path: Path) -> None:
    whole, half = trained(tmp_path / "32"), trained(tmp_path / "16", precision="bfloat16")
    assert half["losses"] == pytest.approx(whole["losses"], rel=0.05)
    assert half["losses"] != whole["losses"]


def test_a_run_that_was_saved_and_restored_ends_like_one_that_was_not(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole")
    half = trained(tmp_path / "parts", steps=15)
    rest = trained(tmp_path / "parts", steps=30)
    assert [*half["losses"], *rest["losses"]] == pytest.approx(whole["losses"], rel=1e-3)
    assert rest["weights"] == pytest.approx(whole["weights"], rel=1e-4)


def test_flags_change_the_speed_and_not_the_result(tmp_path: Path) -> None:
    on, off = trained(tmp_path / "on"), trained(tmp_path / "off", flags="off")
    assert on["losses"] == pytest.approx(off["losses"], rel=1e-3)
    assert on["steps_per_second"] > 0
    assert off["steps_per_second"] > 0
    assert on["device"] == off["device"]


@needs_card
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_step_holds_what_the_plan_says(tmp_path: Path, precision: str) -> None:
    found = trained(tmp_path, precision=precision)
    family = next((name for name, target in TARGETS.items() if target.kind == found["device"]), None)
    if family is None:
        pytest.skip(f"the plan does not know {found['device']}")
    config = ec.RunConfig(default_hooks=False, mesh={"data": -1}, precision=precision)
    estimator = ec.Estimator(transformer(512, 4, vocabulary=VOCABULARY), config=config)
    batch = estimator.first_batch(lambda: batches(8))
    assert batch is not None
    topology = find_topology(f"{family}x{found['devices']}", lambda name: GPUBackend, ["gpu"])
    plan = plan_training(estimator, batch, topology, batch_size=32 * found["devices"])
    # Beside the step: the next batch, and the state before it is donated at the start.
    assert plan.memory.needed * 0.8 <= found["peak_bytes"] <= plan.memory.needed * 1.05 + 2 * plan.memory.batch
