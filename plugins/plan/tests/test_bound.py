"""What is counted beside the temporaries of processors, in programs whose arrays are known."""

import pytest

from estimator_core.errors import BackendUnavailableError
from estimator_plan.bound import exchanged_bytes, in_float16, largest_array
from estimator_plan.hlo import read_module
from plugins.plan.tests.lent_cpus import LentCPUs, planned

LOOP = """
%round (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %n = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %gathered = f32[64]{0} all-gather(%x), dimensions={0}
  %reduced = f32[8]{0} all-reduce(%x), to_apply=%add
  ROOT %t = (s32[], f32[8]{0}) tuple(%n, %reduced)
}

%goes_on (p: (s32[], f32[8])) -> pred[] {
  %p = (s32[], f32[8]{0}) parameter(0)
  ROOT %less = pred[] constant(true)
}

%stacking (a: f32[1000], b: f32[8]) -> f32[1000] {
  %a = f32[1000]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %zero = s32[] constant(0)
  ROOT %stack = f32[1000]{0} dynamic-update-slice(%a, %b, %zero)
}

ENTRY %main (a: f32[1000], b: f32[8]) -> f32[100] {
  %a = f32[1000]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %zero = s32[] constant(0)
  %t = (s32[], f32[8]{0}) tuple(%zero, %b)
  %looped = (s32[], f32[8]{0}) while(%t), condition=%goes_on, body=%round
  %stacked = f32[1000]{0} fusion(%a, %b), kind=kLoop, calls=%stacking
  %small = f32[16]{0} all-reduce(%b), to_apply=%add
  ROOT %last = f32[100]{0} negate(%a)
}
"""


def test_exchanges_of_a_round_go_on_during_the_next_one():
    # The largest single one has 64 numbers, and a round has 64 and 8, as operands and as results.
    assert exchanged_bytes(read_module(LOOP)) == 4 * (64 + 2 * (64 + 8))


def test_outside_of_loops_one_exchange_is_beside_other_work():
    text = LOOP.replace("while(%t), condition=%goes_on, body=%round", "copy(%t)")
    assert exchanged_bytes(read_module(text)) == 4 * 16


def test_the_largest_array_is_one_that_an_operation_computes_and_no_stack():
    assert largest_array(read_module(LOOP)) == 4 * 100


@pytest.mark.parametrize("shape", ["bf16", "8x4xbf16", "?xbf16"])
def test_bfloat16_becomes_float16_in_types_and_nowhere_else(shape):
    text = f'%bf16 = "f"(%0) {{name = "bf16"}} : (tensor<f32>) -> tensor<{shape}>'
    assert in_float16(text) == text.replace(f"<{shape}>", f"<{shape.replace('bf16', 'f16')}>")


def test_bfloat16_takes_half_of_the_bound_of_float32(monkeypatch):
    monkeypatch.setattr(LentCPUs, "workspace_bytes", 0, raising=False)
    whole, half = (
        planned("lostx1", config={"precision": name}, batch_size=4096).memory for name in ("float32", "bfloat16")
    )
    kept_whole, kept_half = whole.at_most - whole.needed, half.at_most - half.needed
    assert kept_half < 0.75 * kept_whole


def test_a_plan_compiles_with_the_flags_of_a_run(monkeypatch):
    def refused(self):
        return {"xla_no_such_flag": "true"}

    planned("cpux1")
    monkeypatch.setattr(LentCPUs, "compiler_options", refused, raising=False)
    with pytest.raises(Exception, match="xla_no_such_flag"):
        planned("cpux1")
    monkeypatch.setattr(LentCPUs, "compiler_options", lambda self: {"xla_allow_excess_precision": False})
    assert planned("cpux1").memory.compiled


def test_a_plan_without_a_compiler_takes_no_flags_of_cards(monkeypatch):
    def unknown(self):
        raise BackendUnavailableError("flags are asked of a compiler only. Install it.")

    monkeypatch.setattr(LentCPUs, "compiler_options", unknown, raising=False)
    assert planned("lostx1").memory.at_most is None
