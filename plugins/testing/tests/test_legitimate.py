"""Components with a good reason to differ pass the suites without replacing a test, by properties and flags."""

import io
import json
import sqlite3
import tarfile

import pytest

from estimator_testing import HookSuite, InputSuite
from plugins.testing.tests.sound_hooks import BudgetHook, TrackerHook
from plugins.testing.tests.sound_inputs import RowsOfSQLite, members_of_tar


class TestBudgetHook(HookSuite):
    def make(self):
        return BudgetHook(seconds=15)


class TestTrackerHook(HookSuite):
    own_keys = frozenset({"run_id"})

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.folder = tmp_path

    def make(self):
        return TrackerHook(self.folder)


class TestRowsOfSQLite(InputSuite):
    shards = False

    @pytest.fixture(autouse=True)
    def table(self, tmp_path):
        self.path = tmp_path / "examples.db"
        made = sqlite3.connect(self.path)
        with made:
            made.execute("CREATE TABLE examples (id INTEGER PRIMARY KEY, x REAL, y REAL)")
            made.executemany("INSERT INTO examples (x, y) VALUES (?, ?)", [(n, 2 * n) for n in range(14)])
        made.close()

    def make(self):
        return self.epochs(1)

    def epochs(self, count):
        return lambda: RowsOfSQLite(self.path, num_epochs=count)


class TestMembersOfTar(InputSuite):
    shards = False

    @pytest.fixture(autouse=True)
    def archive(self, tmp_path):
        self.path = tmp_path / "examples.tar"
        with tarfile.open(self.path, "w") as archive:
            for number in range(14):
                data = json.dumps({"x": [number], "y": number % 2}).encode()
                member = tarfile.TarInfo(f"{number:05}.json")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))

    def make(self):
        return members_of_tar(self.path)


@pytest.mark.parametrize("suite", [TestBudgetHook, TestTrackerHook, TestRowsOfSQLite, TestMembersOfTar])
def test_none_of_them_replaces_a_test(suite):
    assert not [name for name in vars(suite) if name.startswith("test_")]
