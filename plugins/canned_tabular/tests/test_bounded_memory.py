"""The command reads files in blocks, so ten times the rows need hardly more memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from estimator_canned_tabular.cli.distinct import DistinctValues
from estimator_canned_tabular.cli.profile import MOST_COUNTED, ColumnProfile
from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.cli.table import profiles_of


def write(path: Path, rows: int) -> Path:
    """Writes numbers, words, a key with a different value in each row, and a label."""
    rng = np.random.default_rng(0)
    ages, cities = rng.normal(40, 12, rows), rng.choice(["Rome", "Oslo", "Lima"], rows)
    with path.open("w") as file:
        file.write("key,age,city,note,income\n")
        for number, (age, city) in enumerate(zip(ages.tolist(), cities.tolist(), strict=True)):
            income = "high" if age > 40 else "low"
            file.write(f"k{number},{age:.2f},{city},{'some words ' * 4}{number % 50},{income}\n")
    return path


GATHERED = """
import sys, tracemalloc
from pathlib import Path
from estimator_canned_tabular.cli import profile
from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.cli.baselines import tallied
from estimator_canned_tabular.cli.table import profiles_of, typed_input
from estimator_heads import BinaryClassHead, HeadContract

profile.MOST_COUNTED = 2000
tracemalloc.start()
path = Path(sys.argv[1])
schema = Schema.inferred(profiles_of(path, "income", "raise"), "income")
rows = typed_input(path, schema, None, 512, shuffle=True, shuffle_buffer_size=2500)
contract = HeadContract(BinaryClassHead(label_vocabulary=schema.classes))
found = tallied(rows, contract, Path("none"), None, lambda features: None)
print(found.rows, found.bad, tracemalloc.get_traced_memory()[1])
"""
TRAINED = """
import resource, sys
from estimator_core._cli.main import main

quick = ["--model", "linear", "--no-export", "--no-plots", "--epochs", "1", "--batch-size", "1000"]
files = ["--csv", sys.argv[1], "--label", "income", "--model-dir", sys.argv[1] + ".model"]
assert main(["tabular", "train", *files, *quick, "--shuffle-rows", "5000"]) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def in_a_process(program: str, path: Path) -> list[int]:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.splitlines()[-1].split()]


@pytest.mark.slow
def test_inferring_and_reading(tmp_path: Path) -> None:
    """Compares the peak memory of Python and numpy. The smaller file also fills the blocks that are read at once."""
    rows, bad, small = in_a_process(GATHERED, write(tmp_path / "small.csv", 40_000))
    assert (rows, bad) == (40_000, 0)
    rows, bad, large = in_a_process(GATHERED, write(tmp_path / "large.csv", 400_000))
    assert (rows, bad) == (400_000, 0)
    assert large < 1.15 * small


@pytest.mark.slow
def test_training(tmp_path: Path) -> None:
    """Compares the peak of the whole process. jax is the greater part of it, but rows in memory would double it.

    A first run of each fills the cache of compiled programs: compiling takes a fifth of the memory, where it happens.
    """
    peaks = []
    for name, rows in (("small", 80_000), ("large", 800_000)):
        path = write(tmp_path / f"{name}.csv", rows)
        for _ in range(2):
            shutil.rmtree(f"{path}.model", ignore_errors=True)
            (peak,) = in_a_process(TRAINED, path)
        peaks.append(peak)
    small, large = peaks
    assert large < 1.15 * small


def profile_of(values: list[bytes], batch: int) -> ColumnProfile:
    profile = ColumnProfile()
    for begin in range(0, len(values), batch):
        profile.add(values[begin : begin + batch])
    return profile


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_moments_do_not_depend_on_batches(batch: int) -> None:
    numbers = np.random.default_rng(2).normal(1e6, 3.0, 500).round(3)
    profile = profile_of([b"%.3f" % number for number in numbers] + [b"", b"nan"], batch)
    assert profile.numbers
    assert profile.empty == 1
    np.testing.assert_allclose((profile.mean, profile.scale), (numbers.mean(), numbers.std()), rtol=1e-10)


def test_one_word_among_numbers_makes_words_of_them() -> None:
    profile = profile_of([b"1", b"2", b"1", b"1_0"], 2)
    assert not profile.numbers
    assert profile.words == {"1": 2, "2": 1, "1_0": 1}


def test_columns_with_more_words_than_are_counted() -> None:
    count = 3 * MOST_COUNTED
    words = [b"word%d" % (number * 7919 % count) for number in range(2 * count)]
    profiles = {"word": profile_of(words, 4096), "key": profile_of([b"%dk" % n for n in range(count)], 4096)}
    assert not profiles["word"].all_counted
    assert len(profiles["word"].words) <= MOST_COUNTED + 4096
    label = profile_of([b"a", b"b"], 2)
    columns = Schema.inferred({**profiles, "label": label}, "label").columns
    assert columns["key"].kind == "skip"
    assert columns["word"].kind == "hash"
    assert abs(columns["word"].buckets / (2 * count) - 1) < 0.05


@pytest.mark.parametrize("count", [20_000, 300_000])
def test_the_estimate_of_different_values(count: int) -> None:
    values = DistinctValues()
    for begin in range(0, count, 10_000):
        values.add(b"value %d" % number for number in range(begin, min(begin + 20_000, count)))
    assert abs(values.estimate() / count - 1) < 0.05


def test_the_mean_and_the_scale_of_a_label_are_weighted(tmp_path: Path) -> None:
    """A row of weight 0, such as one whose label is a placeholder, does not count. The columns are not weighted."""
    rng = np.random.default_rng(0)
    x, y, weights = rng.normal(size=(2, 300)).tolist(), rng.normal(1e6, 3.0, 300), rng.uniform(0, 2, 300).round(2)
    y[:20], weights[:20] = -999999.0, 0.0
    rows = [f"{a},{b},{c}" for a, b, c in zip(x[0], y.tolist(), weights.tolist(), strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["x,y,w", *rows]) + "\n")
    profiles = profiles_of(path, "y", "raise", weight_column="w")
    mean = np.average(y, weights=weights)
    scale = np.sqrt(np.average((y - mean) ** 2, weights=weights))
    np.testing.assert_allclose((profiles["y"].mean, profiles["y"].scale), (mean, scale), rtol=1e-9)
    np.testing.assert_allclose((profiles["x"].mean, profiles["x"].scale), (np.mean(x[0]), np.std(x[0])), atol=1e-9)
