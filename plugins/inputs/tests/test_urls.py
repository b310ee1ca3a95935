"""Files at URLs are read if a package provides the scheme. Otherwise they are refused by name, never used as a path."""

from pathlib import Path

import numpy as np
import pytest

from estimator_core.errors import ArgumentError, InputError
from estimator_core.storage import StorageGoneError
from estimator_inputs import csv_input_fn, learn_schema
from estimator_inputs.reading import files
from plugins.inputs.tests.written import WRITERS, ids, input_of, some_rows, write_files


@pytest.mark.plugins  # needs estimator-storage
@pytest.mark.parametrize("kind", list(WRITERS))
def test_files_at_a_url_are_read(tmp_path: Path, kind: str) -> None:
    rows = some_rows(40)
    pattern = write_files(tmp_path, kind, rows, 2)
    for url in (f"file://{pattern}", Path(f"file://{pattern}"), [f"file://{pattern.replace('*', p)}" for p in "01"]):
        assert ids(list(input_of(kind, url, 16, shuffle=False)())) == list(range(40))
    assert learn_schema(f"file://{pattern}").feature("count").mean == pytest.approx(float(np.mean(rows["count"])))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://example.org/rows.csv", "files are not read from https://. Download the file"),
        ("HTTP://example.org/rows.csv", "files are not read from http://. Download the file"),
        ("hf://datasets/iris/rows.csv", "Use datasets .pip install datasets.: load_dataset"),
        ("nowhere://bucket/rows-*.csv", "no installed package provides storage for nowhere://"),
        (Path("nowhere://bucket/rows.csv"), "no installed package provides storage for nowhere://"),
    ],
)
def test_other_urls_are_refused_by_name(url: str | Path, message: str) -> None:
    for call in (lambda: csv_input_fn(url, 3, shuffle=False), lambda: learn_schema(url)):
        with pytest.raises(ArgumentError, match=message):
            call()


def test_what_the_store_says_is_an_error_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(url: str) -> list[Path]:
        raise StorageGoneError("The bucket is not there.")

    monkeypatch.setattr(files, "copied_files", gone)
    with pytest.raises(InputError, match=r"s3://bucket/a\.csv cannot be read: The bucket is not there"):
        csv_input_fn("s3://bucket/a.csv", 3, shuffle=False)


def test_a_path_with_a_colon_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "c:" / "rows.csv"
    path.parent.mkdir()
    path.write_text("id\n1\n")
    assert next(csv_input_fn(path, 3, shuffle=False)())["id"].tolist() == [1]
