"""Tests of the memory that is counted in addition to the temporaries of CPUs, in programs with known arrays."""

import pytest

from estimator_core.errors import BackendUnavailableError
from estimator_plan import BoundedByProcessors, CompilesWithFlags
from estimator_plan.bound import exchanged_bytes
from estimator_plan.gpu_memory import has_product, largest_array, more_than_processors, not_stored, parts_kept
from estimator_plan.hlo import read_module
from estimator_plan.lowered_text import in_float16, with_multiplications
from plugins.plan.tests.lent_cpus import BoundedCPUs, FlaggedCPUs, LentCPUs, planned

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
    # The largest exchange has 64 numbers. A round has 64 and 8, as operands and as results.
    assert exchanged_bytes(read_module(LOOP)) == (4 * 64, 4 * 2 * (64 + 8))


def test_an_exchange_between_two_products_of_a_round_stays_in_it():
    # It waits for one product, and the other waits for it. The first can begin a round early, the last end a round
    # late.
    products = """  %before = f32[8]{0} dot(%x, %gathered), lhs_contracting_dims={0}
  %between = f32[40]{0} all-gather(%before), dimensions={0}
  %widened = f32[40]{0} negate(%between)
  %after = f32[8]{0} fusion(%widened), kind=kOutput, calls=%multiplied
"""
    inside = """
%multiplied (a: f32[40]) -> f32[8] {
  %a = f32[40]{0} parameter(0)
  ROOT %product = f32[8]{0} dot(%a, %a), lhs_contracting_dims={0}
}
"""
    line = "  %reduced = f32[8]{0} all-reduce(%x)"
    text = inside + LOOP.replace(line, products + line.replace("%x", "%after"))
    assert exchanged_bytes(read_module(text)) == (4 * 64, 4 * 2 * (64 + 8))
    # If nothing waits for its product, the round ends with it, and the exchange may continue.
    alone = text.replace("dot(%a, %a), lhs_contracting_dims={0}", "add(%a, %a)")
    assert exchanged_bytes(read_module(alone)) == (4 * 64, 4 * 2 * (64 + 40 + 8))


def test_outside_of_loops_one_exchange_is_beside_other_work():
    text = LOOP.replace("while(%t), condition=%goes_on, body=%round", "copy(%t)")
    assert exchanged_bytes(read_module(text)) == (4 * 16, 0)


def test_the_largest_array_is_one_that_an_operation_computes_and_no_stack():
    assert largest_array(read_module(LOOP)) == 4 * 100


# A sum that is partly read, a converted array, a range, a copy for a product, and a product that reads them all.
UNSTORED = """
%part (a: f32[800], n: s32[]) -> f32[100] {
  %a = f32[800]{0} parameter(0)
  %n = s32[] parameter(1)
  ROOT %slice = f32[100]{0} dynamic-slice(%a, %n), dynamic_slice_sizes={100}
}

%widened (a: f16[800]) -> f32[800] {
  %a = f16[800]{0} parameter(0)
  ROOT %convert = f32[800]{0} convert(%a)
}

ENTRY %main (x: f32[20,40], h: f16[800], n: s32[]) -> f32[100] {
  %x = f32[20,40]{1,0} parameter(0)
  %h = f16[800]{0} parameter(1)
  %n = s32[] parameter(2)
  %range = f32[800]{0} iota(), iota_dimension=0
  %wide = f32[800]{0} fusion(%h), kind=kLoop, calls=%widened
  %flipped = f32[20,40]{0,1} copy(%x)
  %both = f32[800]{0} add(%range, %wide)
  %summed = f32[800]{0} all-reduce(%both), to_apply=%add
  %mine = f32[100]{0} fusion(%summed, %n), kind=kLoop, calls=%part
  %product = f32[20,20]{1,0} dot(%x, %flipped), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT %out = f32[100]{0} negate(%mine)
}
"""


def test_what_cards_compute_again_or_read_in_any_layout_is_not_stored():
    module = read_module(UNSTORED)
    assert not_stored(module, "main") == {"range", "wide", "flipped"}
    # A product must read an array, so its conversion is stored.
    stored = UNSTORED.replace("dot(%x, %flipped)", "dot(%wide, %flipped)")
    assert not_stored(read_module(stored), "main") == {"range", "flipped"}


# A scatter whose indices are a sorted order and row counts, and a product whose result a constant scales.
FUSED = """
%indices (order: s32[40,20]) -> s32[800,2] {
  %order = s32[40,20]{1,0} parameter(0)
  %rows = s32[40,20,1]{2,1,0} iota(), iota_dimension=0
  %columns = s32[40,20,1]{2,1,0} bitcast(%order)
  %both = s32[40,20,2]{2,1,0} concatenate(%rows, %columns), dimensions={2}
  ROOT %pairs = s32[800,2]{1,0} bitcast(%both)
}

%scattered (table: f32[40,20], pairs: s32[800,2], x: f32[800]) -> f32[40,20] {
  %table = f32[40,20]{1,0} parameter(0)
  %pairs = s32[800,2]{1,0} parameter(1)
  %x = f32[800]{0} parameter(2)
  ROOT %sum = f32[40,20]{1,0} scatter(%table, %pairs, %x), to_apply=%add
}

%scaled (scale: f32[40,40], x: f32[40,20]) -> f32[40,40] {
  %scale = f32[40,40]{1,0} parameter(0)
  %x = f32[40,20]{1,0} parameter(1)
  %product = f32[40,40]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT %by = f32[40,40]{1,0} multiply(%product, %scale)
}

ENTRY %main (x: f32[800], order: s32[40,20], table: f32[40,20]) -> f32[40,40] {
  %x = f32[800]{0} parameter(0)
  %order = s32[40,20]{1,0} parameter(1)
  %table = f32[40,20]{1,0} parameter(2)
  %half = f32[] constant(0.5)
  %sorted = s32[40,20]{1,0} sort(%order), dimensions={1}, to_apply=%less
  %made = s32[800,2]{1,0} fusion(%sorted), kind=kLoop, calls=%indices
  %scale = f32[40,40]{1,0} broadcast(%half), dimensions={}
  %summed = f32[40,20]{1,0} fusion(%table, %made, %x), kind=kLoop, calls=%scattered
  %out = f32[40,40]{1,0} fusion(%scale, %summed), kind=kCustom, calls=%scaled
  ROOT %end = f32[40,40]{1,0} negate(%out)
}
"""


def test_indices_of_a_scatter_and_constants_after_a_product_are_computed_where_they_are_read():
    assert not_stored(read_module(FUSED), "main") == {"made", "scale"}
    # Arrays that a product or anything but a scatter reads are stored, and so are indices that need computation.
    multiplied = FUSED.replace("dot(%x, %x)", "dot(%x, %scale)")
    assert not_stored(read_module(multiplied), "main") == {"made"}
    updates = FUSED.replace("scatter(%table, %pairs, %x)", "scatter(%table, %x, %pairs)")
    assert not_stored(read_module(updates), "main") == {"scale"}
    worked = FUSED.replace("bitcast(%order)", "negate(%order)")
    assert not_stored(read_module(worked), "main") == {"scale"}


def test_what_the_indices_of_a_scatter_are_made_of_is_held_until_then():
    lines = FUSED.splitlines()
    [late] = [line for line in lines if "%summed = " in line]
    lines.remove(late)
    lines.insert(-2, late)
    module = read_module("\n".join(lines).replace("(%scale, %summed)", "(%scale, %table)"))
    # CPUs hold 1,600 indices, the scale and the scaled product. Cards hold the product, which is also their
    # largest array with its own layout, and the order of 800 numbers.
    assert more_than_processors(module) == 4 * (2 * 1600 + 800) - 4 * 3 * 1600


def test_a_part_of_a_sum_is_kept_where_parts_alone_are_read():
    assert parts_kept(read_module(UNSTORED), "main") == {"summed": 400}
    whole = UNSTORED.replace("ROOT %out = f32[100]{0} negate(%mine)", "ROOT %out = f32[800]{0} negate(%summed)")
    assert parts_kept(read_module(whole), "main") == {}


def test_cards_hold_less_by_what_they_do_not_store():
    # CPUs hold 3,200 bytes four times when they add. Cards hold them once, and then a part of the sum. Their
    # largest array with its own layout is the product, which counts once more.
    processors, cards = 4 * 3200, 3200 + 400 + 1600
    assert more_than_processors(read_module(UNSTORED)) == cards - processors


@pytest.mark.parametrize(("read", "beside"), [("x", 800), ("more", 700)])
def test_an_exchange_continues_beside_what_comes_neither_before_nor_after_it(read, beside):
    module = read_module(f"""
ENTRY %main (x: f32[8]) -> f32[300] {{
  %x = f32[8]{{0}} parameter(0)
  %gathered = f32[800]{{0}} all-gather(%x), dimensions={{0}}
  %late = f32[8]{{0}} dot(%gathered, %x), lhs_contracting_dims={{0}}
  %more = f32[300]{{0}} negate(%late)
  %wide = f32[700]{{0}} negate(%{read})
  ROOT %out = f32[300]{{0}} add(%more, %wide)
}}
""")
    # At the end, 300 and 700 numbers are held. The exchange has 800, the largest array with its own layout 700.
    assert more_than_processors(module) == 4 * (300 + 700 + beside) - 4 * (300 + 700)


@pytest.mark.parametrize(("end", "more"), [("x", 200), ("part", 8)])
def test_an_exchange_that_is_held_anyway_counts_once_and_what_it_reads_is_held_longer(end, more):
    module = read_module(f"""
ENTRY %main (x: f32[8]) -> f32[8] {{
  %x = f32[8]{{0}} parameter(0)
  %part = f32[300]{{0}} negate(%x)
  %gathered = f32[800]{{0}} all-gather(%part), dimensions={{0}}
  %beside = f32[200]{{0}} negate(%x)
  %last = f32[8]{{0}} dot(%gathered, %beside), lhs_contracting_dims={{0}}
  ROOT %out = f32[8]{{0}} dot(%last, %{end}), lhs_contracting_dims={{0}}
}}
""")
    # CPUs hold 300 and 800 numbers, then 800 and 200. Cards may hold all three. If the 300 are read at the end,
    # both hold them, and cards hold one more array with its own layout.
    assert more_than_processors(module) == 4 * more


def test_a_workspace_is_counted_for_products_alone():
    assert has_product(read_module(UNSTORED))
    assert not has_product(read_module(UNSTORED.replace(" dot(", " add(")))


def test_products_that_sum_over_nothing_are_multiplied():
    line = (
        "%86 = stablehlo.dot_general %84, %21, batching_dims = [0] x [0], contracting_dims = [] x [], precision = "
        "[DEFAULT, DEFAULT] : (tensor<9x4xf32>, tensor<9x8xf32>) -> tensor<9x4x8xf32>"
    )
    left, right, product = with_multiplications(line).splitlines()
    assert left.startswith("%left86 = stablehlo.broadcast_in_dim %84, dims = [0, 1] :")
    assert right.startswith("%right86 = stablehlo.broadcast_in_dim %21, dims = [0, 2] :")
    assert product == "%86 = stablehlo.multiply %left86, %right86 : tensor<9x4x8xf32>"
    for kept in (line.replace("[] x []", "[1] x [1]"), line.replace("9x4x8xf32", "9x4x8xf64")):
        assert with_multiplications(kept) == kept


@pytest.mark.parametrize("shape", ["bf16", "8x4xbf16", "?xbf16"])
def test_bfloat16_becomes_float16_in_types_and_nowhere_else(shape):
    text = f'%bf16 = "f"(%0) {{name = "bf16"}} : (tensor<f32>) -> tensor<{shape}>'
    assert in_float16(text) == text.replace(f"<{shape}>", f"<{shape.replace('bf16', 'f16')}>")


def test_bfloat16_takes_half_of_the_bound_of_float32():
    whole, half = (
        planned("lostx1", config={"precision": name}, batch_size=4096, lender=BoundedCPUs).memory
        for name in ("float32", "bfloat16")
    )
    kept_whole, kept_half = whole.at_most - whole.needed, half.at_most - half.needed
    assert kept_half < 0.75 * kept_whole


def test_a_plan_compiles_with_the_flags_of_a_run(monkeypatch):
    def refused(self):
        return {"xla_no_such_flag": "true"}

    planned("cpux1")
    assert planned("cpux1", lender=FlaggedCPUs).memory.compiled
    monkeypatch.setattr(FlaggedCPUs, "compiler_options", refused)
    with pytest.raises(Exception, match="xla_no_such_flag"):
        planned("cpux1", lender=FlaggedCPUs)


def test_a_plan_without_a_compiler_takes_no_flags_of_cards(monkeypatch):
    def unknown(self):
        raise BackendUnavailableError("flags are asked of a compiler only. Install it.")

    monkeypatch.setattr(FlaggedCPUs, "compiler_options", unknown)
    assert planned("lostx1", lender=FlaggedCPUs).memory.at_most is None


@pytest.mark.plugins
def test_the_backend_of_cards_keeps_the_optional_contracts():
    from estimator_backends_gpu import GPUBackend

    assert isinstance(GPUBackend(), CompilesWithFlags)
    assert isinstance(GPUBackend(), BoundedByProcessors)
    assert not isinstance(LentCPUs(), CompilesWithFlags | BoundedByProcessors)
