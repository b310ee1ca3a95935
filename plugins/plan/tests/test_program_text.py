"""Tests of the text of compiled programs: loops, memory spaces, and collectives in all notations."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core.backends import Topology
from estimator_plan.collectives import find_collectives, replica_groups, sent_by_ring
from estimator_plan.hlo import read_module
from estimator_plan.layout import Layout, layout_of
from estimator_plan.traffic import memory_traffic
from plugins.plan.tests.lent_cpus import LentCPUs

PROGRAMS = Path(__file__).parent / "programs"
# Shortened text of libtpu: an asynchronous all-gather as a chain of fusions, a reduce-scatter as a fused
# all-reduce and slice, a loop whose length is in its condition, and arrays in scratch memory (S(1)).
TPU = (PROGRAMS / "tpu.txt").read_text()
# Text of the GPU compiler: pairs of start and done, whose results are tuples.
GPU = (PROGRAMS / "gpu.txt").read_text()


def eight(joined=8):
    """Eight devices in a row, whose groups are joined by fast links."""
    return Layout(axes={"data": 8}, joined=[number // joined for number in range(8)])


def by_kind(text):
    return {
        (each.kind, each.group_size): (each.count, each.payload_bytes, each.sent_bytes)
        for each in find_collectives(read_module(text), eight())
    }


def test_collectives_of_a_tpu_program():
    gathered, scattered = 256 * 256 * 2, 256 * 256 * 4
    assert by_kind(TPU) == {
        ("all-gather", 8): (12, 12 * gathered, 12 * gathered * 7 // 8),
        ("reduce-scatter", 8): (12, 12 * scattered, 12 * scattered * 7 // 8),
        ("all-reduce", 4): (1, 4, 6),
    }


def test_two_chains_of_one_channel_are_two_collectives():
    """libtpu writes the gathers of a `shard_map` like this, with one channel for both."""
    second = TPU.replace('chain_id="0"', 'chain_id="1"').splitlines()[4].replace("%all-gather.1 =", "%all-gather.3 =")
    lines = TPU.splitlines()
    assert 'chain_id="1"' in second
    twice = by_kind("\n".join([*lines[:5], second, *lines[5:]]))
    assert [twice["all-gather", 8], by_kind(TPU)["all-gather", 8]] == [
        (times, times * 256 * 256 * 2, times * 256 * 256 * 2 * 7 // 8) for times in (24, 12)
    ]


def test_collectives_of_a_gpu_program():
    whole = 256 * 256 * 4
    assert by_kind(GPU) == {
        ("all-gather", 8): (1, whole, whole * 7 // 8),
        ("reduce-scatter", 8): (1, whole, whole * 7 // 8),
        ("collective-permute", 2): (1, whole // 8, whole // 8),
    }


@pytest.mark.parametrize(
    ("devices", "groups"),
    [
        ("", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (", device_ids=([2,4]T(1,0))", [[0, 4, 1, 5], [2, 6, 3, 7]]),
        (", device_ids=(7,6,5,4,3,2,1,0)", [[7, 6, 5, 4], [3, 2, 1, 0]]),
    ],
)
def test_a_mesh_in_an_order_of_its_own_has_the_groups_of_that_order(devices, groups):
    assert replica_groups(f"replica_groups=mesh['a'=2,'b'=4]{devices} {{'b'}}, dimensions={{0}}", 8) == groups


def test_groups_that_span_machines_are_told():
    found = find_collectives(read_module(GPU), eight(joined=4))
    crossing = {each.kind: each.crosses_groups for each in found}
    assert crossing == {"all-gather": True, "reduce-scatter": True, "collective-permute": False}


def test_what_hosts_send_between_slices_of_tpus_counts():
    """Shortened text of libtpu: each of eight devices in two slices sends its part of the sum to its host."""
    attributes = (
        'channel_id=2, is_host_transfer=true, frontend_attributes={_xla_megascale_transfer_type="KIND",'
        '_xla_megascale_target="{1,2}x{0:3}"}'
    )
    sends = "\n".join(
        f"  %s.{kind} = (f32[2,8]{{1,0}}, u32[], token[]) send(%p, %t), {attributes.replace('KIND', kind)}"
        for kind in ("ALL_REDUCE", "ALL_GATHER")
    )
    text = f"ENTRY %main (p: f32[2,8]) -> f32[2,8] {{\n  %p = f32[2,8]{{1,0}} parameter(0)\n{sends}\n}}\n"
    layout = Layout(axes={"data": 2, "fsdp": 4}, joined=[0, 0, 0, 0, 1, 1, 1, 1])
    found = find_collectives(read_module(text), layout)
    assert {(each.kind, each.group_size, each.axes, each.crosses_groups) for each in found} == {
        ("all-reduce", 2, ("data",), True),
        ("all-gather", 2, ("data",), True),
    }
    assert [each.sent_bytes for each in found] == [64, 64]


def test_what_a_permute_sends_between_slices_counts():
    """libtpu 0.0.42.1 writes `ppermute` between two slices of v5e:2x2 as five rounds that each send to one device."""
    layout = Layout(axes={"stage": 2, "model": 4}, joined=[0, 0, 0, 0, 1, 1, 1, 1])
    module = read_module((PROGRAMS / "tpu_permute.txt").read_text())
    (found,) = find_collectives(module, layout)
    assert (found.kind, found.group_size, found.axes) == ("collective-permute", 2, ("stage",))
    assert found.crosses_groups
    assert (found.count, found.payload_bytes, found.sent_bytes) == (5, 5 * 128 * 128 * 4, 5 * 128 * 128 * 4)
    assert module.notes == {}


def test_a_transfer_between_slices_of_an_unknown_kind_is_said():
    text = (PROGRAMS / "tpu_permute.txt").read_text().replace("ONE_TO_ONE", "ONE_TO_SOME")
    module = read_module(text)
    assert find_collectives(module, Layout(axes={"stage": 8}, joined=[0, 0, 0, 0, 1, 1, 1, 1])) == ()
    assert [note for note in module.notes if "ONE_TO_SOME" in note] != []


def test_a_program_of_slices_numbers_the_devices_of_one():
    """Shortened text of libtpu 0.0.42.1: a step for two slices of v5e:2x2, where the last axis crosses the network."""
    text = (PROGRAMS / "tpu_slices.txt").read_text()
    layout = Layout(axes={"fsdp": 4, "stage": 2}, joined=[0, 1] * 4)
    for groups in ("{{0,1,2,3}}", "[1,4]<=[4]", "{}"):
        module = read_module(text.replace("{{0,1,2,3}}", groups))
        found = find_collectives(module, layout)
        part, whole = 64 * 512, 256 * 512
        assert {(each.kind, each.group_size, each.axes, each.crosses_groups, each.payload_bytes) for each in found} == {
            ("all-reduce", 4, ("fsdp",), False, 4 * whole),
            ("all-gather", 4, ("fsdp",), False, 2 * whole),
            ("all-reduce", 2, ("stage",), True, 4 * part),
        }


def test_numbers_of_a_program_count_through_its_mesh_and_not_through_the_devices():
    """A mesh may hold the devices in any order, so the second half of the program's numbers may be the first slice."""

    @dataclass(frozen=True)
    class Chip:
        id: int
        slice_index: int

    class Turned:
        shape: ClassVar = {"data": 2, "model": 2}
        devices = np.array([[Chip(3, 1), Chip(1, 0)], [Chip(2, 1), Chip(0, 0)]])

    figures = LentCPUs().topology("cpu", (2,)).figures
    slices = Topology(name="2*cpux2", device_count=4, host_count=2, figures=figures, slice_count=2)
    layout = layout_of(Turned(), slices)
    assert layout.joined == [1, 0, 1, 0]
    assert (layout.spanned([[0, 1], [2, 3]]), layout.crosses([[0, 1], [2, 3]])) == (("model",), True)
    assert (layout.spanned([[0, 2], [1, 3]]), layout.crosses([[0, 2], [1, 3]])) == (("data",), False)


def test_scratch_memory_is_no_traffic():
    """The loop reads `whole` from memory in each of 12 rounds. The all-reduce at the end moves 4 bytes in and out."""
    condition = 4 + 4 + 1  # reads two int32, writes a pred[]
    assert memory_traffic(read_module(TPU)) == 12 * (256 * 256 * 4 + condition) + 4 + 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("replica_groups={}", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ("replica_groups=[4,2]<=[8]", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("replica_groups=mesh['a'=2,'b'=4] {'a'}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("replica_groups=mesh['a'=2,'b'=4] {'a','b'}", [[0, 1, 2, 3, 4, 5, 6, 7]]),
    ],
)
def test_notations_of_groups(text, expected):
    assert replica_groups(text, 8) == expected


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_one_device_sends_nothing(kind):
    assert sent_by_ring(kind, 1000, 1) == 0


def test_an_all_reduce_costs_a_reduce_scatter_and_an_all_gather():
    assert sent_by_ring("all-reduce", 800, 8) == sent_by_ring("reduce-scatter", 800, 8) + sent_by_ring(
        "all-gather", 800, 8
    )


def test_traffic_agrees_with_the_compiler_where_there_is_no_loop():
    def function(x, w):
        return jnp.tanh(x @ w) @ w

    x, w = jnp.ones((64, 128)), jnp.ones((128, 128))
    compiled = jax.jit(function).lower(x, w).compile()
    told = compiled.cost_analysis()["bytes accessed"]
    assert memory_traffic(read_module(compiled.as_text())) == pytest.approx(told, rel=0.05)


def test_traffic_of_a_loop_grows_with_its_rounds():
    def traffic(layers):
        def function(x, w):
            return jax.lax.scan(lambda carry, kernel: (jnp.tanh(carry @ kernel), None), x, w)[0]

        compiled = jax.jit(function).lower(jnp.ones((64, 128)), jnp.ones((layers, 128, 128))).compile()
        return memory_traffic(read_module(compiled.as_text()))

    kernel = 128 * 128 * 4
    assert 30 * kernel < traffic(40) - traffic(20) < 120 * kernel  # each round reads only its own kernel


def test_a_loop_of_unknown_length_is_said():
    module = read_module(TPU.replace("direction=LT", "direction=NE"))
    assert dict(module.executions())["body"] == 1
    assert [note for note in module.notes if "counted once" in note] != []


ELEMENTS = """HloModule jit_step, num_partitions=1

ENTRY %main (pair: (f32[1000], f32[10])) -> f32[10] {
  %pair = (f32[1000]{0}, f32[10]{0}) parameter(0)
  ROOT %last = f32[10]{0} negate(%pair#1)
}
"""


def test_an_element_of_a_tuple_counts_and_not_the_tuple():
    """Compilers since jaxlib 0.12 write no line for an element."""
    older = ELEMENTS.replace("  ROOT", "  %element = f32[10]{0} get-tuple-element(%pair), index=1\n  ROOT")
    older = older.replace("%pair#1", "%element")
    assert memory_traffic(read_module(ELEMENTS)) == memory_traffic(read_module(older)) == 2 * 10 * 4
