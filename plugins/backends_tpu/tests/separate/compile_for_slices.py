"""Training steps compiled for absent slices: they fit, donate their state, and transfer the expected bytes.

Session `tpu_aot` of the noxfile. `RECORD=1` writes the collectives of the installed versions into `recorded/`.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from importlib.metadata import version
from pathlib import Path

import pytest

from plugins.backends_tpu.tests.separate.steps import EXAMPLES, LENGTH, planned
from plugins.backends_tpu.tests.separate.transformer import SHAPES, sent_by_estimator, sent_by_hand

SLICES = {"v5e:2x4": 8, "v5e:8x8": 64, "v5e:16x16": 256, "v5p:4x4x4": 64}
MODELS = ("digits", "bert_base")
RECORD = Path(__file__).parent / "recorded" / f"jaxlib-{version('jaxlib')}-libtpu-{version('libtpu')}.json"


@pytest.mark.parametrize("topology", SLICES)
@pytest.mark.parametrize("model", MODELS)
def test_compiles_and_fits(model: str, topology: str) -> None:
    plan = planned(model, topology)
    assert plan.topology.device_count == SLICES[topology]
    assert plan.memory.compiled
    assert 0 < plan.memory.needed < plan.memory.limit
    assert (plan.memory.fits, plan.memory.shortfall, plan.advice) == (True, 0, ())
    assert plan.compile_seconds > 0


@pytest.mark.parametrize("topology", SLICES)
@pytest.mark.parametrize("model", MODELS)
def test_the_whole_state_is_donated(model: str, topology: str) -> None:
    memory = planned(model, topology).memory
    assert memory.donated >= memory.state


def test_a_fully_sharded_step_takes_less_of_each_device_the_more_there_are() -> None:
    plans = [planned("bert_base", topology) for topology in ("v5e:2x4", "v5e:8x8", "v5e:16x16")]
    assert len({plan.examples for plan in plans}) == 1
    for fewer, more in itertools.pairwise(plans):
        assert more.memory.state < fewer.memory.state
        assert more.memory.needed < fewer.memory.needed
    whole = plans[0].memory.whole_state
    assert [plan.memory.state / whole for plan in plans] == pytest.approx([1 / 8, 1 / 64, 1 / 256], rel=0.1)


def test_what_does_not_divide_stays_whole_and_is_no_reason_to_fail() -> None:
    """The digits network has no axis that 256 divides."""
    few, some, many = (planned("digits", topology).memory for topology in ("v5e:2x4", "v5e:8x8", "v5e:16x16"))
    assert some.state < few.state < many.state == many.whole_state - 16  # `state` does not include the clock


def test_operations_of_bert_base_by_the_usual_formula() -> None:
    """There are three passes of 24 b s h^2 + 4 b s^2 h per layer. The pooler and the classifier are the rest."""
    plan = planned("bert_base", "v5e:2x4")
    layers = 3 * 12 * (24 * 256 * LENGTH * 768**2 + 4 * 256 * LENGTH**2 * 768)
    assert sum(plan.flops.values()) == pytest.approx(layers, rel=0.02)
    assert plan.compiler_flops * plan.topology.device_count < 0.3 * layers  # it counts the layers of the scan once


def test_operations_do_not_depend_on_the_slice() -> None:
    assert len({sum(planned("bert_base", topology).flops.values()) for topology in SLICES}) == 1


def test_data_parallel_steps_reduce_each_gradient_once() -> None:
    plan = planned("digits", "v5e:2x4", sharded=False)
    assert [each.kind for each in plan.collectives] == ["all-reduce"]
    reduced = sum(each.payload_bytes for each in plan.collectives)
    assert plan.memory.variables <= reduced < plan.memory.variables + 64


def test_a_transformer_sends_little_more_than_fully_sharded_by_hand() -> None:
    """With 1.2 billion variables over 16 chips, each is gathered for two passes, and its gradient is reduced."""
    by_hand, found = sent_by_hand("v5e:4x4", 64), sent_by_estimator("v5e:4x4", 64)
    variables = sum(math.prod(shape) for shape in SHAPES.values())
    least = (2 * 2 + 4) * variables * 15 // 16  # in bfloat16 for two passes, and in float32
    assert least <= found <= 1.3 * by_hand
    assert by_hand < 1.6 * least  # this libtpu reduces gradients on all devices, so they are sent twice


def test_a_step_that_does_not_fit_is_told_so() -> None:
    plan = planned("bert_base", "v5e:1x1", batch_size=2048)
    assert plan.memory.fits is False
    assert plan.memory.shortfall == plan.memory.needed - plan.memory.limit > 2**30
    assert any("--batch-size 1024" in line for line in plan.advice)
    assert any("bfloat16" in line for line in plan.advice)


@pytest.mark.parametrize("topology", SLICES)
@pytest.mark.parametrize("model", MODELS)
def test_collectives_are_those_recorded_for_these_versions(model: str, topology: str) -> None:
    found = {
        f"{each.kind} of {each.group_size}": [each.count, each.payload_bytes]
        for each in planned(model, topology).collectives
    }
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if os.environ.get("RECORD"):
        recorded[f"{model} {topology}"] = found
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert f"{model} {topology}" in recorded, f"nothing is recorded in {RECORD.name}; run with RECORD=1 and look at it"
    assert found == recorded[f"{model} {topology}"]


def test_the_command_prints_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    from estimator_core.cli import main

    plan = planned("digits", "v5e:2x4", batch_size=64, sharded=False)
    example = EXAMPLES / "digits_convnet.py"
    assert main(["plan", str(example), "--topology", "v5e:2x4", "--batch-size", "64", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["flops"]["total"] == sum(plan.flops.values())
    assert values["memory"]["needed"] == plan.memory.needed
    assert [[each["kind"], each["count"], each["payload_bytes"]] for each in values["collectives"]] == [
        [each.kind, each.count, each.payload_bytes] for each in plan.collectives
    ]
