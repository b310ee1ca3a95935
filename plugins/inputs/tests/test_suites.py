"""Every kind of file fulfils the contract of inputs, with and without shuffling, in several files and blocks."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from estimator_core.testing import InputSuite
from plugins.inputs.tests.written import input_of, some_rows, write_files


class _OfFiles(InputSuite):
    kind: ClassVar[str]
    parts: ClassVar[int] = 3
    options: ClassVar[dict[str, Any]] = {"shuffle": False}

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> None:
        self.pattern = write_files(tmp_path, self.kind, some_rows(137), self.parts)

    def make(self) -> Any:
        return self.epochs(1)

    def epochs(self, count: int) -> Any:
        return input_of(self.kind, self.pattern, 20, block_bytes=600, num_epochs=count, **self.options)


class TestCsv(_OfFiles):
    kind = "csv"


class TestShuffledCsv(_OfFiles):
    kind = "csv"
    options: ClassVar[dict[str, Any]] = {"shuffle": True, "shuffle_buffer_size": 33, "seed": 5}


class TestShuffledCsvSharedByFiles(_OfFiles):
    kind = "csv"
    parts = 4
    options: ClassVar[dict[str, Any]] = {"shuffle": True, "shuffle_buffer_size": 33, "seed": 5, "reader_num_threads": 3}


class TestJsonLines(_OfFiles):
    kind = "jsonl"
    options: ClassVar[dict[str, Any]] = {"shuffle": True, "shuffle_buffer_size": 33}


class TestParquet(_OfFiles):
    kind = "parquet"


class TestShuffledParquet(_OfFiles):
    kind = "parquet"
    options: ClassVar[dict[str, Any]] = {"shuffle": True, "shuffle_buffer_size": 33}


class TestTFRecord(_OfFiles):
    kind = "tfrecord"


class TestShuffledTFRecord(_OfFiles):
    kind = "tfrecord"
    options: ClassVar[dict[str, Any]] = {"shuffle": True, "shuffle_buffer_size": 33, "parser_num_threads": 2}
