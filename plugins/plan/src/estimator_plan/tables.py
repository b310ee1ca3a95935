"""A plan as readable tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from estimator_plan.memory import Memory, gib
from estimator_plan.training_plan import TrainingPlan


def report(plan: TrainingPlan) -> str:
    """Returns the plan as text to print."""
    return "\n".join(_lines(plan))


def _lines(plan: TrainingPlan) -> Iterator[str]:
    topology = plan.topology
    mesh = ", ".join(f"{axis}={size}" for axis, size in plan.mesh.items())
    yield f"{topology.name}   {topology.device_count} x {topology.figures.kind}, {topology.host_count} hosts"
    yield f"mesh         {mesh}; global batch {plan.examples}"
    yield ""
    for part in (_memory_lines(plan), _operation_lines(plan), _time_lines(plan), _collective_lines(plan)):
        lines = list(part)
        yield from [*lines, ""] if lines else []
    if plan.compile_seconds is not None:
        versions = ", ".join(f"{name} {version}" for name, version in plan.versions.items())
        yield f"compiled in {plan.compile_seconds:.1f} s ({versions})"
    yield from (f"note: {note}" for note in plan.notes)


def _memory_lines(plan: TrainingPlan) -> Iterator[str]:
    yield from _columns("memory of one device", "", _memory_rows(plan.memory))
    yield ""
    if plan.host_rows is not None:
        rows = plan.host_rows
        yield f"tables in the memory of the host: {gib(plan.memory.host)} beside each device"
        yield f"  a device reads rows of at most {gib(rows.read)} in a step, and writes {gib(rows.written)}"
        yield ""
    yield _verdict(plan.memory)
    yield from (f"  - {line}" for line in plan.advice)


def _operation_lines(plan: TrainingPlan) -> Iterator[str]:
    flops = sum(plan.flops.values())
    dtypes = ", ".join(f"{dtype} {count:.4g}" for dtype, count in sorted(plan.flops.items()))
    yield f"operations   {flops:.4g} a step ({dtypes or 'none'}); {flops / plan.sharing:.4g} a device"
    if plan.compiler_flops is not None:
        yield f"             the compiler counts {plan.compiler_flops:.4g} a device, bodies of loops once"


def _time_lines(plan: TrainingPlan) -> Iterator[str]:
    times = plan.times
    rows = [("compute", times.compute, None), ("memory", times.memory, plan.traffic)]
    for name, crosses, seconds in (("links", False, times.links), ("network", True, times.network)):
        sent = sum(each.sent_bytes for each in plan.collectives or () if each.crosses_groups is crosses)
        if sent:
            rows.append((name, seconds, sent))
    yield from _columns(
        "time of a step at peak figures",
        "bytes a device",
        [(name, seconds_text(seconds), "" if size is None else gib(size)) for name, seconds, size in rows],
    )
    if times.at_least is not None and times.memory is None:
        yield f"  at least {seconds_text(times.at_least)}"
    elif times.at_least is not None:
        utilisation = "" if times.utilisation is None else f"; at most {times.utilisation:.0%} of peak"
        least, most = seconds_text(times.at_least), seconds_text(times.at_most)
        yield f"  {least} if all overlap, {most} if nothing does; bound by {times.bound_by}{utilisation}"


def _collective_lines(plan: TrainingPlan) -> Iterator[str]:
    if plan.collectives is None:
        return
    rows = [
        (
            f"{each.kind} of {each.group_size} ({'+'.join(each.axes)}{', network' if each.crosses_groups else ''})",
            str(each.count),
            gib(each.payload_bytes),
            gib(each.sent_bytes),
        )
        for each in plan.collectives
    ]
    yield from table(("collectives of a step", "times", "bytes", "sent a device"), rows or [("none", "", "", "")])


def _memory_rows(memory: Memory) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, int | None]] = [
        ("variables", memory.variables),
        ("model state", memory.model_state),
        ("optimizer slots", memory.slots),
        *([("cache of tables", memory.cache)] if memory.cache else []),
        ("batch", memory.batch),
        ("temporaries", memory.temporary),
        ("program", memory.code),
        ("needed" if memory.compiled else "needed at least", memory.needed),
        *([("needed at most", memory.at_most)] if memory.at_most is not None else []),
        ("usable", memory.limit),
    ]
    return [
        (name, "?" if size is None else gib(size), "" if size is None else f"{size / memory.limit:.1%}")
        for name, size in rows
    ]


def _verdict(memory: Memory) -> str:
    if memory.shortfall:
        return f"DOES NOT FIT: {gib(memory.shortfall)} are missing on each device."
    if memory.fits is None:
        return "It may fit: the known parts take less than the available memory."
    if memory.at_most is not None:
        return f"It fits by an upper bound, with at least {gib(memory.limit - memory.at_most)} to spare on each device."
    return f"It fits, with {gib(memory.limit - memory.needed)} to spare on each device."


def _columns(title: str, last: str, rows: list[tuple[str, str, str]]) -> Iterator[str]:
    yield from table((title, "", last), rows)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yields the lines of a table. The first column is aligned to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        first = ("" if row is head else "  ") + row[0]
        cells = [
            first.ljust(widths[0] + 2),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        yield "  ".join(cells).rstrip()


def seconds_text(seconds: float | None) -> str:
    """Returns a time in words."""
    if seconds is None:
        return "?"
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
