"""Tests that need a card, in session `gpu` of the noxfile. `CARDS=cpu` runs the programs without a card."""

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
PROGRAMS = "plugins.backends_gpu.tests.separate"
FIGURES_FILE = os.environ.get("CARDS_FIGURES")
#: The folders of the runs of 30 steps.
SHORT = {"float32": "32", "bfloat16": "16"}
needs_card = pytest.mark.skipif(SMALL, reason="only a card can show it: CARDS=gpu")


@cache
def printed(program: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """Returns the output of a program in its own process, because flags cannot change after jax has started."""
    command = [sys.executable, "-m", f"{PROGRAMS}.{program}", "--backend", CARDS, "--model-dir", str(folder)]
    ended = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    keep({name: found[name] for name in found if name != "losses"})
    return found


def keep(figures: dict[str, Any]) -> None:
    """Adds a line to the file of figures, if there is such a file."""
    if FIGURES_FILE:
        with Path(FIGURES_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(figures) + "\n")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all tests. A run that several tests use runs once."""
    return tmp_path_factory.mktemp("runs")


def trained(folder: Path, *, precision: str = "float32", flags: str = "on", steps: int = 30) -> dict[str, Any]:
    """Trains a small language model."""
    sizes = ["--width", "64", "--batch", "4"] if SMALL else []
    return printed("card_program", folder, "--precision", precision, "--flags", flags, "--steps", str(steps), *sizes)


def with_table(folder: Path, access: str, rows: int = 4_000_000) -> dict[str, Any]:
    """Trains a table of embeddings on the device, in host memory, or in host memory with a cache on the device."""
    sizes = ["--rows", "100000", "--batch", "64"] if SMALL else ["--rows", str(rows)]
    return printed("card_tables", folder, "--access", access, *sizes)


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


def test_float32_learns(runs: Path) -> None:
    losses = trained(runs / "32")["losses"]
    assert np.mean(losses[-3:]) < 0.99 * np.mean(losses[:3])


def test_bfloat16_learns_as_float32_does(runs: Path) -> None:
    whole, half = trained(runs / "32"), trained(runs / "16", precision="bfloat16")
    assert half["losses"] == pytest.approx(whole["losses"], rel=0.05)
    assert half["losses"] != whole["losses"]


def test_a_run_that_was_saved_and_restored_ends_like_one_that_was_not(runs: Path) -> None:
    whole = trained(runs / "32")
    half = trained(runs / "parts", steps=15)
    rest = trained(runs / "parts", steps=30)
    assert [*half["losses"], *rest["losses"]] == pytest.approx(whole["losses"], rel=1e-3)
    assert rest["weights"] == pytest.approx(whole["weights"], rel=1e-4)


def test_flags_change_the_speed_and_not_the_result(runs: Path) -> None:
    on, off = trained(runs / "32"), trained(runs / "off", flags="off")
    assert on["losses"] == pytest.approx(off["losses"], rel=1e-3)
    assert on["steps_per_second"] > 0
    assert off["steps_per_second"] > 0
    assert on["device"] == off["device"]


def test_a_table_in_the_memory_of_the_host_has_the_numbers_of_one_on_the_card(runs: Path) -> None:
    on_card, on_host, cached = (with_table(runs / access, access) for access in ("device", "host", "cached"))
    assert (on_host["memory"], cached["memory"]) == ("pinned_host", "pinned_host")
    assert on_card["memory"] != "pinned_host"
    assert on_host["losses"] == pytest.approx(on_card["losses"], rel=1e-5)
    assert cached["losses"] == pytest.approx(on_host["losses"], rel=1e-5)


@needs_card
def test_a_table_in_the_memory_of_the_host_leaves_the_card_free(runs: Path) -> None:
    on_card, on_host, cached = (with_table(runs / access, access) for access in ("device", "host", "cached"))
    assert on_host["peak_bytes"] < 0.2 * on_card["peak_bytes"]
    assert cached["peak_bytes"] < 0.5 * on_card["peak_bytes"]


@needs_card
def test_a_step_with_a_table_in_the_memory_of_the_host_does_not_copy_the_table(runs: Path) -> None:
    small, large = with_table(runs / "small", "host", 400_000), with_table(runs / "host", "host")
    assert large["steps_per_second"] > 0.5 * small["steps_per_second"]


@needs_card
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_step_holds_what_the_plan_says(runs: Path, precision: str) -> None:
    found = trained(runs / SHORT[precision], precision=precision)
    family = next((name for name, target in TARGETS.items() if target.kind == found["device"]), None)
    if family is None:
        pytest.skip(f"the plan does not know {found['device']}")
    config = ec.RunConfig(default_hooks=False, mesh={"data": -1}, precision=precision)
    estimator = ec.Estimator(transformer(512, 4, vocabulary=VOCABULARY), config=config)
    batch = estimator.first_batch(lambda: batches(8))
    assert batch is not None
    topology = find_topology(f"{family}x{found['devices']}", lambda name: GPUBackend, ["gpu"])
    plan = plan_training(estimator, batch, topology, batch_size=32 * found["devices"])
    keep({"device": found["device"], "plan": precision, "needed": plan.memory.needed, "peak": found["peak_bytes"]})
    # In addition to the step: the next batch, and the state before it is donated at the start.
    assert plan.memory.needed * 0.8 <= found["peak_bytes"] <= plan.memory.needed * 1.05 + 2 * plan.memory.batch
