"""Tests of the order, epochs, batches and shares of rows, and of the places at which reading continues."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_inputs import Schema, csv_input_fn, learn_schema, read_tfrecord, write_tfrecord
from estimator_inputs.reading.files import find_files
from plugins.inputs.tests.written import WRITERS, ids, input_of, some_rows, write_csv, write_files

KINDS = list(WRITERS)
N = 120


@pytest.fixture(scope="module")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pattern of 120 rows in 4 files, for each kind."""
    folder = tmp_path_factory.mktemp("rows")
    return {kind: write_files(folder, kind, some_rows(N), 4) for kind in KINDS}


def order(pattern: str, kind: str = "csv", batch_size: int = 10, **options: Any) -> list[int]:
    return ids(list(input_of(kind, pattern, batch_size, **{"block_bytes": 256, **options})()))


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_is_every_row_once_and_each_in_another_order(patterns: dict[str, str], kind: str) -> None:
    found = order(patterns[kind], kind, shuffle=True, shuffle_buffer_size=50, num_epochs=3, seed=1)
    epochs = [found[start : start + N] for start in range(0, 3 * N, N)]
    assert all(sorted(epoch) == list(range(N)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert list(range(N)) not in epochs


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_tells_the_order(patterns: dict[str, str], kind: str) -> None:
    first = order(patterns[kind], kind, shuffle=True, seed=1)
    assert order(patterns[kind], kind, shuffle=True, seed=1) == first
    assert order(patterns[kind], kind, shuffle=True, seed=2) != first
    source = input_of(kind, patterns[kind], 10, shuffle=True, block_bytes=256)
    assert ids(list(source(config=ec.RunConfig(tf_random_seed=1)))) == first


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_change_the_order(patterns: dict[str, str], kind: str, threads: int) -> None:
    options = {"shuffle": True, "shuffle_buffer_size": 30, "seed": 3}
    one = order(patterns[kind], kind, **options, parser_num_threads=threads)
    assert one == order(patterns[kind], kind, **options, parser_num_threads=2)


def test_files_are_read_in_turn(patterns: dict[str, str]) -> None:
    in_turn = order(patterns["csv"], shuffle=False, reader_num_threads=4)
    assert sorted(in_turn) == list(range(N))
    firsts = [in_turn.index(30 * part) for part in range(4)]
    assert max(firsts) < 60  # all four files begin before the first one ends
    assert order(patterns["csv"], shuffle=False) == list(range(N))


def test_a_window_mixes_files_and_reaches_no_further(patterns: dict[str, str]) -> None:
    whole = order(patterns["csv"], shuffle=True, shuffle_buffer_size=N, seed=5)
    assert len({number // 30 for number in whole[:20]}) == 4
    unmixed = order(patterns["csv"], shuffle=True, shuffle_buffer_size=1, seed=5)
    for start in range(0, N, 12):
        windows = order(patterns["csv"], shuffle=True, shuffle_buffer_size=12, seed=5)
        assert sorted(windows[start : start + 12]) == sorted(unmixed[start : start + 12])


def test_batches_run_over_the_borders_of_epochs(patterns: dict[str, str]) -> None:
    def sizes(**options: Any) -> list[int]:
        source = input_of("csv", patterns["csv"], 50, shuffle=True, num_epochs=2, block_bytes=256, **options)
        return [len(labels) for _, labels in source()]

    assert sizes() == [50, 50, 50, 50, 40]
    assert sizes(drop_remainder=True) == [50, 50, 50, 50]


def test_an_endless_input_says_so(patterns: dict[str, str]) -> None:
    iterator = input_of("csv", patterns["csv"], 100, shuffle=False, num_epochs=None)()
    assert iterator.input_options.endless
    assert ids([next(iterator) for _ in range(4)]) == [*range(N), *range(N), *range(N), *range(40)]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    kind=st.sampled_from(KINDS),
    shuffle=st.booleans(),
    buffer=st.integers(1, 150),
    first=st.integers(1, 70),
    second=st.integers(1, 70),
    batches=st.integers(1, 5),
    in_turn=st.integers(1, 5),
)
def test_resumes_with_another_batch_size(
    patterns: dict[str, str], kind: str, shuffle: bool, buffer: int, first: int, second: int, batches: int, in_turn: int
) -> None:
    options = {"shuffle": shuffle, "shuffle_buffer_size": buffer, "num_epochs": 2, "reader_num_threads": in_turn}
    expected = order(patterns[kind], kind, **options)
    iterator = input_of(kind, patterns[kind], first, **options, block_bytes=256)()
    read = ids([batch for _, batch in zip(range(batches), iterator, strict=False)])
    state = json.loads(json.dumps(iterator.get_state()))
    resumed = input_of(kind, patterns[kind], second, **options, block_bytes=256, parser_num_threads=1)()
    resumed.set_state(state)
    assert read + ids(list(resumed)) == expected


def test_a_position_is_small(tmp_path: Path) -> None:
    write_csv(tmp_path / "rows.csv", some_rows(5000))
    iterator = csv_input_fn(tmp_path / "rows.csv", 100, shuffle=True, shuffle_buffer_size=4000)()
    assert max(len(json.dumps(iterator.get_state())) for _ in iterator) < 300


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_shared_by_batches_any_number_of_processes_has_the_batches_of_one(
    patterns: dict[str, str], kind: str, shuffle: bool
) -> None:
    how: dict[str, Any] = {"shuffle": shuffle, "seed": 1, "block_bytes": 256}
    how |= {"shard_by": "batches"} if shuffle else {}
    one = [ids([batch]) for batch in input_of(kind, patterns[kind], 18, **how)()]
    assert [len(batch) for batch in one] == [18] * 6 + [12]
    for count in (2, 3):
        contexts = [ec.inputs.InputContext(num_input_pipelines=count, input_pipeline_id=part) for part in range(count)]
        parts = [
            list(
                ec.inputs.open_input(
                    input_of(kind, patterns[kind], 18 // count, **how), mode="train", input_context=context
                )
            )
            for context in contexts
        ]
        together = [ids([(batch.features, None) for batch in batches]) for batches in zip(*parts, strict=True)]
        assert together == one
        assert {batches[-1].position.examples for batches in parts} == {N}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shards", [2, 3, 4, 7])
def test_every_row_belongs_to_one_process(patterns: dict[str, str], kind: str, shards: int) -> None:
    for shard_by in ("auto", "rows"):
        source = input_of(kind, patterns[kind], 10, shuffle=True, seed=1, block_bytes=256, shard_by=shard_by)
        contexts = [ec.inputs.InputContext(num_input_pipelines=shards, input_pipeline_id=i) for i in range(shards)]
        parts = [ids(list(source(input_context=context))) for context in contexts]
        assert sorted(number for part in parts for number in part) == list(range(N))
        sizes = [len(part) for part in parts]
        if kind != "parquet" or shards == 4:
            assert max(sizes) - min(sizes) <= N / shards / 2


def test_files_of_one_name_and_size_in_another_order_are_another_input(tmp_path: Path) -> None:
    """A resumed run continued in the middle of the wrong file."""
    for place, folder in enumerate(["data/day=1", "data/day=2"]):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.csv").write_text(
            "id\n" + "\n".join(map(str, range(10 + 10 * place, 20 + 10 * place)))
        )
    one, two = sorted(tmp_path.glob("data/*/part.csv"))
    first = ec.inputs.open_input(csv_input_fn([one, two], 4, shuffle=False), mode="train")
    position = next(first).position
    other = ec.inputs.open_input(csv_input_fn([two, one], 4, shuffle=False), mode="train", position=position)
    assert next(other).features["id"].tolist() == [20, 21, 22, 23]
    assert "starts again: names_and_sizes was" in str(other.restored)
    (tmp_path / "data").rename(tmp_path / "moved")
    moved = [tmp_path / "moved" / path.relative_to(tmp_path / "data") for path in (one, two)]
    same = ec.inputs.open_input(csv_input_fn(moved, 4, shuffle=False), mode="train", position=position)
    assert next(same).features["id"].tolist() == [14, 15, 16, 17]


def shares(source: Any) -> list[list[int]]:
    """Returns the ids that each of two processes reads."""
    contexts = [ec.inputs.InputContext(num_input_pipelines=2, input_pipeline_id=index) for index in range(2)]
    return [[row for batch in source(input_context=one) for row in batch["id"].tolist()] for one in contexts]


def test_a_process_whose_files_have_no_rows_in_a_later_epoch_reads_the_next_one(tmp_path: Path) -> None:
    """The run ended in that epoch with an error, and again after each restart."""
    for number, rows in enumerate([[0, 1, 2], [3, 4], [], []]):
        (tmp_path / f"{number}.csv").write_text("\n".join(["id", *map(str, rows)]) + "\n")
    pattern, options = f"{tmp_path}/*.csv", {"shuffle": True, "seed": 3, "shard_by": "files"}
    assert all(shares(csv_input_fn(pattern, 1, num_epochs=3, **options)))
    whole = shares(csv_input_fn(pattern, 1, num_epochs=6, **options))
    assert sorted(whole[0] + whole[1]) == sorted([*range(5)] * 6)
    assert max(map(len, whole)) > 15  # in the last three epochs, one of the processes has no row
    with pytest.raises(InputError, match="No rows for process"):
        shares(csv_input_fn([tmp_path / "0.csv", tmp_path / "2.csv"], 1, **options))


def test_another_input_is_told_by_its_fingerprint(patterns: dict[str, str], tmp_path: Path) -> None:
    def fingerprint(kind: str = "csv", **options: Any) -> str:
        return input_of(kind, patterns[kind], 10, **{"shuffle": True, "seed": 1, **options})().fingerprint

    same = fingerprint()
    assert fingerprint(parser_num_threads=0, drop_remainder=True) == same
    others = [
        fingerprint(seed=2),
        fingerprint(shuffle=False),
        fingerprint(shuffle_buffer_size=5),
        fingerprint(reader_num_threads=2),
        fingerprint(block_bytes=128),
        fingerprint("jsonl"),
        fingerprint(select_columns=["id", "label"]),
    ]
    assert len({same, *others}) == len(others) + 1


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"shuffle": None}, ArgumentError, "shuffle must be one of True, False, given: None"),
        ({"num_epochs": 0}, ArgumentError, "num_epochs must be at least 1"),
        ({"seed": -1}, ArgumentError, "seed must be at least 0"),
        ({"shuffle_buffer_size": 2.5}, ArgumentTypeError, "shuffle_buffer_size must be an integer"),
        ({"parser_num_threads": -1}, ArgumentError, "parser_num_threads must be at least 0"),
        ({"on_error": "ignore"}, ArgumentError, "on_error must be one of 'raise', 'skip'"),
        ({"shard_by": "hosts"}, ArgumentError, "shard_by must be one of"),
        ({"compression": "rar"}, ArgumentError, "compression must be one of"),
        ({"shufle_seed": 1}, ArgumentTypeError, "There is no option 'shufle_seed'"),
    ],
)
def test_options_that_cannot_be(
    patterns: dict[str, str], options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        csv_input_fn(patterns["csv"], 10, **{"shuffle": True, **options})


def test_patterns_that_cannot_be(tmp_path: Path) -> None:
    for pattern, error, text in (
        (f"{tmp_path}/*.csv", ArgumentError, "No file matches"),
        (tmp_path, ArgumentError, "is a directory"),
        ([], ArgumentError, "empty list"),
        (5, ArgumentTypeError, "must be a path"),
    ):
        with pytest.raises(error, match=text):
            csv_input_fn(pattern, 1, shuffle=False)  # pyright: ignore[reportArgumentType]


def test_files_of_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_tfrecord("~/two.tfrecord", [b"one"])
    (tmp_path / "rows.csv").write_text("a\n1\n")
    assert list(read_tfrecord("~/two.tfrecord")) == [b"one"]
    learn_schema("~/rows.csv").write("~/schema.toml")
    assert Schema.read("~/schema.toml").feature("a").kind == "number"
    assert not (tmp_path / "~").exists()
    assert find_files(["~/rows.csv", "~/*.tfrecord"]) == (tmp_path / "rows.csv", tmp_path / "two.tfrecord")
    (tmp_path / "~$rows.csv").write_text("a\n1\n")
    assert find_files("~$*.csv") == (Path("~$rows.csv"),)


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst", "lz4"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "tfrecord"])
def test_compressed_files(tmp_path: Path, kind: str, suffix: str) -> None:
    import bz2
    import gzip
    import lzma

    import pyarrow as pa

    rows = some_rows(200)
    writer, ending = WRITERS[kind]
    plain = writer(tmp_path / f"rows.{ending}", rows).read_bytes()
    path = tmp_path / f"rows.{ending}.{suffix}"
    if suffix in ("zst", "lz4"):
        with pa.output_stream(str(path), compression={"zst": "zstd"}.get(suffix, suffix)) as stream:
            stream.write(plain)
    else:
        path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[suffix].compress(plain))
    source = input_of(kind, str(path), 30, shuffle=False, block_bytes=500)
    assert ids(list(source())) == list(range(200))
    iterator = source()
    read = ids([next(iterator), next(iterator)])
    resumed = source()
    resumed.set_state(iterator.get_state())
    assert read + ids(list(resumed)) == list(range(200))
    assert np.array_equal(next(source())[0]["weight"], rows["weight"][:30])


@pytest.mark.parametrize("threads", [0, 2])
def test_a_program_that_ends_while_an_input_is_open_prints_nothing(patterns: dict[str, str], threads: int) -> None:
    """It printed a traceback: the names of modules are gone when the interpreter ends."""
    program = (
        "from estimator_inputs import csv_input_fn\n"
        f"batches = csv_input_fn({patterns['csv']!r}, 2, shuffle=False, parser_num_threads={threads})()\n"
        "print(len(next(batches)['id']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
