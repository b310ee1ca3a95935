"""Tests of files that a URL with a pattern names: they equal those at a path."""

import glob
from pathlib import Path

import pytest

from estimator_core.storage import ObjectMissingError, copied_files

NAMES = ("rows.csv", "a/rows.csv", "a/b/rows.csv", "a/b/.rows.csv", ".hid/rows.csv", "a/part-[1].csv", "a/part-1.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "there" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "there"


@pytest.mark.parametrize(
    "pattern",
    ["*.csv", "*/*.csv", "**/*.csv", "a/**/*.csv", "**/rows.csv", "a/**/b/*.csv", "a/b/.*", "a/?art-[0-9].csv", "*/*"],
)
def test_a_pattern_names_the_files_that_it_names_at_a_path(folder: Path, pattern: str) -> None:
    at_path = [Path(found) for found in glob.glob(str(folder / pattern), recursive=True)]
    here = sorted(found.relative_to(folder).as_posix() for found in at_path if found.is_file())
    assert here
    assert sorted(path.read_text() for path in copied_files(f"file://{folder}/{pattern}")) == here


def test_two_stars_at_the_end_are_all_files_below(folder: Path) -> None:
    assert len(copied_files(f"file://{folder}/a/**")) == 4


def test_a_name_with_a_bracket_that_is_a_file_is_that_file(folder: Path) -> None:
    (copy,) = copied_files(f"file://{folder}/a/part-[1].csv")
    assert copy.read_text() == "a/part-[1].csv"


def test_no_match_is_refused(folder: Path) -> None:
    with pytest.raises(ObjectMissingError, match="No file matches"):
        copied_files(f"file://{folder}/b/**/*.csv")
