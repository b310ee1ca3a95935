"""Tests that the doctor finds each fault that would let two runs destroy each other's work, and passes sound stores."""

import json
import time

import pytest

from estimator_core.cli import main
from estimator_core.storage import LocalStorage, ObjectExistsError, StorageDeniedError
from estimator_storage import examine
from plugins.storage.tests import emulators
from plugins.storage.tests.man_in_the_middle import man_in_the_middle


class Forgets(LocalStorage):
    """Accepts every conditional write."""

    def put_new(self, key, data):
        self.put(key, data)


class RefusesAndWrites(LocalStorage):
    def put_new(self, key, data):
        try:
            super().put_new(key, data)
        except ObjectExistsError:
            self.put(key, data)
            raise


class SendsTwice(LocalStorage):
    """Acts as a proxy that repeats requests."""

    def put_new(self, key, data):
        super().put_new(key, data)
        super().put_new(key, data)


class LooksThenWrites(LocalStorage):
    """Works for one writer but not for several: it checks whether the object exists, and then writes it."""

    def put_new(self, key, data):
        if [entry for entry in self.list(key.rpartition("/")[0]) if entry.key == key]:
            raise ObjectExistsError(f"{key} exists")
        time.sleep(0.01)
        self.put(key, data)


class ListsLate(LocalStorage):
    def list(self, prefix):
        return iter(list(super().list(prefix))[:-1])


class ListsWide(LocalStorage):
    def list(self, prefix):
        return (entry for entry in super().list("") if entry.key.startswith(prefix))


class RangesFromTheStart(LocalStorage):
    def get_ranges(self, key, ranges):
        return super().get_ranges(key, [(0, end - begin) for begin, end in ranges])


class RangesCutShort(LocalStorage):
    def get_ranges(self, key, ranges):
        data = self.get(key)
        return [data[begin:end] for begin, end in ranges]


class KeepsDeleted(LocalStorage):
    def delete(self, keys):
        pass


class Denies(LocalStorage):
    def delete(self, keys):
        raise StorageDeniedError("may not be deleted. The credentials need s3:DeleteObject.")


FAULTS = {
    Forgets: ("conditional writes", "the server ignores the condition"),
    RefusesAndWrites: ("conditional writes", "but it changed the object"),
    SendsTwice: ("conditional writes", "sends requests twice"),
    LooksThenWrites: ("16 writers at once", "were accepted"),
    ListsLate: ("lists", "lacks an object that was just written"),
    ListsWide: ("lists", "has objects below .../10"),
    RangesFromTheStart: ("ranges", "bytes other than those written"),
    RangesCutShort: ("ranges", "more bytes can be read"),
    KeepsDeleted: ("deletes", "can still be read"),
    Denies: ("deletes", "s3:DeleteObject"),
}


@pytest.mark.parametrize("broken", FAULTS)
def test_each_fault_is_found(tmp_path, broken):
    check, text = FAULTS[broken]
    found = {finding.check: finding.text for finding in examine(broken(tmp_path)) if not finding.ok}
    assert text in found[check]


def test_a_sound_storage_passes_and_is_left_as_it_was(tmp_path):
    storage = LocalStorage(tmp_path)
    storage.put("theirs", b"x")
    findings = list(examine(storage))
    assert [finding.check for finding in findings if not finding.ok] == []
    assert len(findings) == 5
    assert [entry.key for entry in storage.list("")] == ["theirs"]


def test_the_command_says_that_a_directory_is_safe(tmp_path, capsys):
    assert main(["storage", "doctor", str(tmp_path), "--megabytes", "1"]) == 0
    out = capsys.readouterr().out
    assert "FAULT" not in out
    assert "Runs are safe here" in out
    assert "MB/s" in out
    assert main(["storage", "doctor", str(tmp_path), "--megabytes", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["safe"]
    assert "MB/s" in told["speed"]
    assert len(told["findings"]) > 3
    assert list(tmp_path.iterdir()) == []


def test_the_command_finds_a_server_that_ignores_conditions(s3, capsys, monkeypatch):
    emulators.s3_client().create_bucket(Bucket="deaf-bucket")
    assert main(["storage", "doctor", "s3://deaf-bucket/run", "--megabytes", "1"]) == 0
    assert "Runs are safe here" in capsys.readouterr().out
    with man_in_the_middle(s3) as middle:
        middle.is_deaf = True
        monkeypatch.setenv("AWS_ENDPOINT_URL", middle.url)
        assert main(["storage", "doctor", "s3://deaf-bucket/run"]) == 1
    out = capsys.readouterr().out
    assert "FAULT  conditional writes: a second conditional write of a key is accepted" in out
    assert "FAULT  16 writers at once: of 16 simultaneous conditional writes of one key, 16 were accepted" in out
    assert "ok     ranges" in out
    assert "Do not train here" in out


def test_the_command_names_a_missing_bucket_and_an_unknown_scheme(s3, capsys):
    assert main(["storage", "doctor", "s3://no-such-bucket/run"]) == 1
    assert "the bucket or container does not exist (404 NoSuchBucket" in capsys.readouterr().out
    assert main(["storage", "doctor", "ftp://me:secret@host/run"]) == 2
    printed = capsys.readouterr()
    assert "Known schemes: file://, abfs://, abfss://, az://, gs://, s3://." in printed.err
    assert printed.out == ""
    assert "secret" not in printed.err


@pytest.mark.parametrize("words", [[""], [".", "--megabytes", "0"], [".", "--megabytes", "-3"], ["s3://", "--json"]])
def test_the_command_refuses_what_it_cannot_examine(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", "doctor", *words]) == 2
    assert capsys.readouterr().out == ""
