"""Rows that are held out of training are the same in every epoch, according to their number in the file."""

import itertools
from pathlib import Path
from typing import Any, ClassVar

import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import InputContext
from estimator_core.testing import InputSuite
from estimator_inputs import csv_input_fn, jsonl_input_fn
from plugins.inputs.tests.written import WRITERS, ids, input_of, some_rows, write_files

ROWS, EVERY = 137, 10


def numbers_of(files: int) -> tuple[list[int], list[int]]:
    """The rows that are held out, and the other rows. Every file counts its own rows."""
    borders = [round(ROWS * part / files) for part in range(files + 1)]
    held = [row for a, b in itertools.pairwise(borders) for row in range(a + EVERY - 1, b, EVERY)]
    return held, [row for row in range(ROWS) if row not in held]


@pytest.mark.parametrize("kind", list(WRITERS))
@pytest.mark.parametrize("block_bytes", [200, 1 << 19])
def test_every_tenth_row_of_a_file(tmp_path: Path, kind: str, block_bytes: int) -> None:
    pattern = write_files(tmp_path, kind, some_rows(ROWS), 1)
    held, others = numbers_of(1)
    options: dict[str, Any] = {"block_bytes": block_bytes, "hold_out_every": EVERY}
    assert ids(list(input_of(kind, pattern, 8, shuffle=False, held_out=True, **options)())) == held
    assert ids(list(input_of(kind, pattern, 8, shuffle=False, **options)())) == others
    shuffled = ids(list(input_of(kind, pattern, 8, shuffle=True, num_epochs=3, seed=4, **options)()))
    for epoch in range(3):
        assert sorted(shuffled[epoch * len(others) : (epoch + 1) * len(others)]) == others


@pytest.mark.parametrize("kind", list(WRITERS))
def test_three_parts_of_a_file(tmp_path: Path, kind: str) -> None:
    """Every row is in one part. `parts()`, which also returns places, has the same rows."""
    pattern = write_files(tmp_path, kind, some_rows(ROWS), 1)
    found: list[int] = []
    for places in ((0, 1, 2, 3, 4, 5, 6, 7), (8,), (9,)):
        options: dict[str, Any] = {"block_bytes": 300, "hold_out_every": EVERY, "held_out": places}
        source = input_of(kind, pattern, 8, shuffle=False, **options)
        part = ids(list(source()))
        assert part == [row for row in range(ROWS) if row % EVERY in places]
        assert ids([batch for batch, _ in source().parts()]) == part
        found += part
    assert sorted(found) == list(range(ROWS))


def test_places_of_a_part_name_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id\n" + "".join(f"{n}\n" for n in range(40)))
    source = csv_input_fn(path, 4, shuffle=False, hold_out_every=10, held_out=(3, 8))
    ((batch, where),) = source().parts()
    assert [(n, where(row)) for row, n in enumerate(batch["id"].tolist())][:3] == [
        (3, f"{path}, line 5"),
        (8, f"{path}, line 10"),
        (13, f"{path}, line 15"),
    ]


@pytest.mark.parametrize("shard_by", ["files", "rows"])
@pytest.mark.parametrize("held_out", [True, False])
def test_shares_of_a_part(tmp_path: Path, shard_by: str, held_out: bool) -> None:
    pattern = write_files(tmp_path, "csv", some_rows(ROWS), 2)
    options: dict[str, Any] = {"hold_out_every": EVERY, "held_out": held_out, "shard_by": shard_by, "block_bytes": 300}
    source = input_of("csv", pattern, 4, shuffle=True, **options)
    found: list[int] = []
    for index in range(2):
        context = InputContext(num_input_pipelines=2, input_pipeline_id=index)
        found += ids(list(source(input_context=context)))
    assert sorted(found) == numbers_of(2)[0 if held_out else 1]


def test_empty_lines_and_quoted_newlines_are_no_rows(tmp_path: Path) -> None:
    lines = [f'{n},"a\n{n}"\n' if n % 3 else f"{n},b\r\n\r\n\n" for n in range(60)]
    path = tmp_path / "rows.csv"
    path.write_bytes(("id,word\n" + "".join(lines)).encode())
    for block_bytes in (64, 1 << 19):
        source = csv_input_fn(path, 9, shuffle=False, block_bytes=block_bytes, hold_out_every=7, held_out=True)
        assert [n for batch in source() for n in batch["id"].tolist()] == list(range(6, 60, 7))
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"id": {n}}}\n' + "\n" * (n % 2) for n in range(60)))
    source = jsonl_input_fn(path, 9, shuffle=False, block_bytes=64, hold_out_every=7, held_out=True)
    assert [n for batch in source() for n in batch["id"].tolist()] == list(range(6, 60, 7))


def test_bad_rows_leave_the_parts_apart(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id\n" + "".join("x\n" if n % 9 == 4 else f"{n}\n" for n in range(200)))
    options: dict[str, Any] = {"shuffle": False, "column_types": {"id": "int64"}, "on_error": "skip", "block_bytes": 64}
    held, others = (
        [
            n
            for batch in csv_input_fn(path, 9, hold_out_every=5, held_out=part, **options)()
            for n in batch["id"].tolist()
        ]
        for part in (True, False)
    )
    assert sorted(held + others) == [n for n in range(200) if n % 9 != 4]
    assert 30 <= len(held) <= 40


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id\n1\n")
    with pytest.raises(ArgumentError, match="hold_out_every must be at least 2, given: 1"):
        csv_input_fn(path, 9, shuffle=False, hold_out_every=1)
    with pytest.raises(ArgumentTypeError, match=r"hold_out_every must be an integer, given: 0\.1"):
        csv_input_fn(path, 9, shuffle=False, hold_out_every=0.1)  # pyright: ignore[reportArgumentType]
    for places in ((), (10,), (-1,), (True,)):
        with pytest.raises(ArgumentError, match="held_out must name places from 0 to 9 among 10 rows, given"):
            csv_input_fn(path, 9, shuffle=False, hold_out_every=10, held_out=places)
    with pytest.raises(ArgumentError, match="held_out needs hold_out_every"):
        csv_input_fn(path, 9, shuffle=False, held_out=True)


class TestPartOfCsv(InputSuite):
    options: ClassVar[dict[str, Any]] = {"shuffle": True, "shuffle_buffer_size": 33, "seed": 5, "hold_out_every": EVERY}

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> None:
        self.pattern = write_files(tmp_path, "csv", some_rows(ROWS), 3)

    def make(self) -> Any:
        return input_of("csv", self.pattern, 20, block_bytes=600, **self.options)
