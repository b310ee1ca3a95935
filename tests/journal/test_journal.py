"""Tests of the journal: one writer at a time, whatever happens to its records."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from estimator_core._checkpoint.audit import audit
from estimator_core._journal import writer
from estimator_core._journal.entries import Ended, Evaluated, JournalError, Retired, Saved, Segment, Took
from estimator_core._journal.reading import EVERY, lineage_of, newest_snapshot, read_lineage, refresh
from estimator_core._journal.writer import observe, take_over
from estimator_core._storage.contract import ObjectExistsError, OutcomeUnknownError, StorageError, StorageGoneError
from estimator_core._storage.local import LocalStorage
from estimator_core.errors import SupersededError


def saved(step: int, place: str | None = None) -> Saved:
    return Saved(step=step, place=place or f"checkpoints/{step}", digest="0" * 64)


def record(root: Path, number: int) -> Path:
    """Returns the path of a record of the only journal."""
    (path,) = root.glob(f"journal/*/{number:010d}")
    return path


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def newest(lineage):
    return max(lineage.saved, default=0)


def test_what_is_published_is_read_again(storage):
    journal = take_over(storage, "one", newest)
    result = Evaluated(name="", step=5, metrics={"loss": 0.5, "names": ["a"]})
    segment = Segment(directory="", name="events.1", size=100, step=5)
    journal.publish(saved(5), result, segment)
    journal.publish(Ended(step=5, reason="input", failed=False))
    lineage = read_lineage(storage)
    assert lineage == journal.lineage
    assert lineage.saved == {5: saved(5)}
    assert lineage.evaluations == {("", 5): result}
    assert lineage.segments == [segment]
    assert lineage.ended == Ended(step=5, reason="input", failed=False)


def test_a_superseded_writer_records_nothing_more_and_names_its_successor(storage):
    first = take_over(storage, "host-a, process 1", newest)
    first.publish(saved(5))
    second = take_over(storage, "host-b, process 2", newest)
    for _ in range(2):
        with pytest.raises(SupersededError, match="host-b, process 2"):
            first.publish(saved(10))
    second.publish(saved(10, "checkpoints/10-second"))
    assert read_lineage(storage).saved[10].place == "checkpoints/10-second"
    assert read_lineage(storage, whole=True).epoch == 2


def test_going_back_drops_what_was_recorded_after_the_step(storage):
    journal = take_over(storage, "one", newest)
    for step in (5, 10, 15):
        journal.publish(saved(step), Evaluated(name="", step=step, metrics={}))
        journal.publish(Segment(directory="", name=f"events.{step}", size=1, step=step))
    lineage = take_over(storage, "two", lambda lineage: 10).lineage
    assert sorted(lineage.saved) == [5, 10]
    assert list(lineage.retired) == ["checkpoints/15"]
    assert [step for _, step in lineage.evaluations] == [5, 10]
    assert [one.step for one in lineage.segments] == [5, 10]
    assert [took.step for took in lineage.starts] == [0, 10]


def test_a_checkpoint_saved_again_retires_the_one_before(storage):
    journal = take_over(storage, "one", newest)
    journal.publish(saved(5, "a"))
    journal.publish(saved(5, "b"), Retired(place="b"))
    assert journal.lineage.saved == {}
    assert list(journal.lineage.retired) == ["a", "b"]


def test_a_checkpoint_published_again_after_a_lost_answer_does_not_retire_itself(storage):
    journal = take_over(storage, "one", newest)
    journal.publish(saved(5, "a"))
    journal.publish(saved(5, "a"))
    assert journal.lineage.saved == {5: saved(5, "a")}
    assert not journal.lineage.retired


def test_a_segment_told_again_replaces_itself_and_keeps_its_place(storage):
    journal = take_over(storage, "one", newest)
    for name, size in (("a", 1), ("b", 2), ("a", 3)):
        journal.publish(Segment(directory="eval", name=name, size=size, step=1))
    assert [(one.name, one.size) for one in journal.lineage.segments] == [("a", 3), ("b", 2)]


def test_of_many_starts_at_once_each_has_an_epoch_of_its_own(storage):
    journals = []

    def start(index):
        journals.append(take_over(storage, f"writer {index}", newest))

    threads = [threading.Thread(target=start, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(journal.epoch for journal in journals) == list(range(1, 9))
    last = read_lineage(storage, whole=True).writer
    outcomes = []
    for journal in journals:
        try:
            journal.publish(saved(1))
            outcomes.append(journal.lineage.writer)
        except SupersededError:
            pass
    assert outcomes == [last]


def test_an_observer_records_beside_the_writer_and_supersedes_nobody(storage):
    journal = take_over(storage, "one", newest)
    observe(storage, "evaluator", Evaluated(name="x", step=0, metrics={"loss": 1.0}))
    journal.publish(saved(5))
    lineage = read_lineage(storage)
    assert lineage.evaluations["x", 0].metrics == {"loss": 1.0}
    assert 5 in lineage.saved
    with pytest.raises(JournalError, match="evaluator, which is not the writer"):
        observe(storage, "evaluator", saved(6))
    assert journal.publish(saved(7)) == 3  # what was refused was not written


def test_an_observer_that_comes_before_any_run_spoils_nothing(storage):
    result = Evaluated(name="x", step=0, metrics={"loss": 1.0})
    observe(storage, "evaluator", result)
    journal = take_over(storage, "one", newest)
    assert journal.epoch == 1
    assert journal.lineage.evaluations["x", 0] == result


class TakenOverAtOnce(LocalStorage):
    """A storage in which another run takes over between the first record and the next check of its writer."""

    others = 0

    def put_new(self, key, data):
        super().put_new(key, data)
        if key.startswith("journal/") and not self.others:
            self.others = take_over(LocalStorage(self.url), "the other", newest).epoch


def test_a_run_that_is_superseded_while_it_takes_over_does_not_think_itself_the_other(tmp_path):
    storage = TakenOverAtOnce(tmp_path)
    journal = take_over(storage, "one", newest)
    assert (journal.epoch, storage.others) == (1, 2)
    assert journal.superseded_by() == "the other"
    with pytest.raises(SupersededError, match="the other"):
        journal.publish(saved(5))


class LosesAnswers(LocalStorage):
    """Carries out every conditional write, but hides the outcome of every other one."""

    calls = 0

    def put_new(self, key, data):
        super().put_new(key, data)
        self.calls += 1
        if self.calls % 2:
            raise OutcomeUnknownError("the answer was lost")


def test_a_lost_answer_is_neither_a_loss_nor_a_double(tmp_path):
    storage = LosesAnswers(tmp_path)
    journal = take_over(storage, "one", newest)
    for step in range(1, 6):
        journal.publish(saved(step))
    lineage = read_lineage(storage, whole=True)
    assert lineage.number == 5
    assert sorted(lineage.saved) == [1, 2, 3, 4, 5]


class HoldsRequests(LocalStorage):
    """Delays a request, lets something else happen meanwhile, and hides the outcome of the request."""

    meanwhile: Callable[[], None] | None = None

    def put_new(self, key, data):
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
            raise OutcomeUnknownError("no answer came")
        super().put_new(key, data)


def test_a_held_request_is_refused_where_another_run_has_taken_over(tmp_path):
    storage = HoldsRequests(tmp_path)
    journal = take_over(storage, "one", newest)
    journal.publish(saved(1))

    def other_run():
        take_over(LocalStorage(tmp_path), "the other", newest).publish(saved(2, "checkpoints/two"))

    storage.meanwhile = other_run
    with pytest.raises(SupersededError, match="the other"):
        journal.publish(saved(2))
    lineage = read_lineage(LocalStorage(tmp_path), whole=True)
    assert (lineage.number, lineage.epoch) == (3, 2)
    assert lineage.saved == {1: saved(1), 2: saved(2, "checkpoints/two")}


@pytest.mark.parametrize(("seconds", "attempts"), [(300.0, 2), (0.0, 31)])
def test_a_store_that_never_answers_is_asked_for_two_minutes(tmp_path, monkeypatch, seconds, attempts):
    class NeverAnswers(LocalStorage):
        """Takes a fixed time for each write and hides its outcome."""

        calls = 0

        def put_new(self, key, data):
            clock.now += seconds
            self.calls += 1
            raise OutcomeUnknownError("no answer came")

    clock = SimpleNamespace(now=0.0)
    slept = SimpleNamespace(
        monotonic=lambda: clock.now,
        sleep=lambda pause: setattr(clock, "now", clock.now + pause),
        time=lambda: clock.now,
    )
    monkeypatch.setattr(writer, "time", slept)
    storage = NeverAnswers(tmp_path)
    with pytest.raises(StorageError, match=r"whether identity was written\. The last error: no answer"):
        take_over(storage, "one", newest)
    assert storage.calls == attempts


def test_a_snapshot_and_the_records_come_to_the_same(storage):
    journal = take_over(storage, "one", newest)
    for step in range(1, EVERY + 10):
        journal.publish(saved(step), Evaluated(name="", step=step, metrics={"loss": float("inf")}))
        if step > 3:
            journal.publish(Retired(place=f"checkpoints/{step - 3}"))
    assert len(list(storage.list("snapshots"))) > 1
    assert read_lineage(storage) == read_lineage(storage, whole=True) == journal.lineage


def test_a_damaged_snapshot_is_passed_over(storage, tmp_path):
    journal = take_over(storage, "one", newest)
    for step in range(1, EVERY + 2):
        journal.publish(saved(step))
    last = sorted((tmp_path / "snapshots").glob("*/*"))[-1]
    last.write_bytes(last.read_bytes()[:-70] + b"x" * 70)
    assert read_lineage(storage) == journal.lineage


def test_only_the_newest_snapshots_are_kept(storage):
    journal = take_over(storage, "one", newest)
    for step in range(3 * EVERY + 5):
        journal.publish(Ended(step=step, reason="input", failed=False))
    kept = [entry.key for entry in storage.list("snapshots")]
    assert [int(key[-10:]) for key in kept] == [2 * EVERY, 3 * EVERY]
    assert read_lineage(storage) == read_lineage(storage, whole=True)
    storage.put(kept[-1], b"damaged")
    assert newest_snapshot(storage, journal.lineage.identity).number == 2 * EVERY
    assert read_lineage(storage) == journal.lineage


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: data.replace(b'"step":5', b'"step":6')])
def test_a_damaged_record_is_refused(storage, tmp_path, damage):
    journal = take_over(storage, "one", newest)
    number = journal.publish(saved(5))
    path = record(tmp_path, number)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(JournalError, match="0000000001 is torn or damaged"):
        read_lineage(storage)
    with pytest.raises(JournalError, match="differs from what was written"):
        journal.publish(saved(6))


def test_a_removed_model_dir_stops_the_run_and_is_not_made_again(storage, tmp_path):
    journal = take_over(storage, "one", newest)
    elsewhere = tmp_path.with_name(tmp_path.name + "-moved")
    tmp_path.rename(elsewhere)
    with pytest.raises(StorageGoneError):
        journal.publish(saved(5))
    assert not tmp_path.exists()
    tmp_path.mkdir()
    with pytest.raises(StorageGoneError, match="was removed or moved"):
        journal.publish(saved(5))
    take_over(LocalStorage(tmp_path), "another", newest)
    with pytest.raises(StorageGoneError, match="replaced by another"):
        journal.publish(saved(5))
    assert read_lineage(LocalStorage(elsewhere)).saved == {}


def test_a_run_that_stood_still_while_its_model_dir_was_replaced_leaves_the_other_alone(tmp_path):
    class Replaced(LocalStorage):
        """A storage whose model_dir is replaced between the check of a publish and its record."""

        def put_new(self, key, data):
            if "0000000001" in key:
                (tmp_path / "identity").unlink()
                shutil.rmtree(tmp_path / "journal")
                take_over(LocalStorage(tmp_path), "another", newest)
            super().put_new(key, data)

    journal = take_over(Replaced(tmp_path), "one", newest)
    journal.publish(saved(5))
    with pytest.raises(StorageGoneError, match="replaced by another"):
        journal.publish(saved(10))
    other = take_over(LocalStorage(tmp_path), "the next one", newest)
    assert [took.writer for took in other.lineage.starts] == ["another", "the next one"]
    assert other.publish(saved(1)) == 2


def test_an_identity_that_appears_while_one_reads_is_no_fault(tmp_path):
    class Begun(LocalStorage):
        """A storage in which another run begins the model_dir between two checks."""

        begun = False

        def list(self, prefix):
            if not self.begun:
                self.begun = True
                take_over(LocalStorage(tmp_path), "another", newest)
            return super().list(prefix)

    assert read_lineage(Begun(tmp_path)).writer == "another"


def test_a_journal_without_its_identity_is_refused(storage, tmp_path):
    take_over(storage, "one", newest)
    (tmp_path / "identity").unlink()
    with pytest.raises(JournalError, match="a journal and no identity"):
        take_over(storage, "two", newest)


@pytest.mark.parametrize("text", ["", "0123abcd\n"])
def test_an_identity_that_is_empty_or_damaged_is_refused(storage, tmp_path, text):
    take_over(storage, "one", newest)
    (tmp_path / "identity").write_text(text)
    words = rf"{tmp_path}/identity is empty or damaged\. Write the name of the folder in `journal` into it"
    for call in (take_over, lambda *_: lineage_of(tmp_path)):
        with pytest.raises(JournalError, match=words):
            call(storage, "two", newest)
    (finding,) = audit(tmp_path).findings
    assert (finding.path, finding.mendable) == ("identity", False)
    (tmp_path / "identity").write_text(next((tmp_path / "journal").iterdir()).name)
    assert [took.writer for took in take_over(storage, "two", newest).lineage.starts] == ["one", "two"]


def test_nothing_is_written_into_a_gap(storage, tmp_path):
    journal = take_over(storage, "one", newest)
    for step in (5, 6, 7):
        journal.publish(saved(step))
    record(tmp_path, 1).unlink()
    before = sorted(tmp_path.rglob("*"))
    words = r"/0000000001 is missing, but journal/.*/0000000003 exists\. Restore it from a copy\. Without one, move"
    with pytest.raises(JournalError, match=words):
        take_over(storage, "two", newest)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_snapshot_does_not_count_without_its_records(storage, tmp_path):
    journal = take_over(storage, "one", newest)
    for step in range(70):
        journal.publish(saved(step))
    assert [entry.key[-10:] for entry in storage.list("snapshots")] == ["0000000064"]
    (tmp_path / "journal").rename(tmp_path / "away")
    assert read_lineage(storage).number == -1
    later = take_over(storage, "two", newest)
    for step in range(70):
        later.publish(saved(step))
    assert read_lineage(storage) == read_lineage(storage, whole=True) == later.lineage
    assert [took.writer for took in later.lineage.starts] == ["two"]


def test_a_journal_of_a_newer_format_is_refused_with_its_number(storage, tmp_path, monkeypatch):
    monkeypatch.setattr("estimator_core._journal.entries.FORMAT", 2)
    take_over(storage, "one", newest)
    monkeypatch.setattr("estimator_core._journal.entries.FORMAT", 1)
    storage.delete([entry.key for entry in storage.list("snapshots")])
    with pytest.raises(JournalError, match="has format 2; this release reads format 1"):
        read_lineage(storage)


def test_a_record_put_in_the_middle_breaks_the_chain(storage, tmp_path):
    journal = take_over(storage, "one", newest)
    journal.publish(saved(5))
    journal.publish(saved(6))
    record(tmp_path, 1).write_bytes(record(tmp_path, 2).read_bytes())
    words = r"/0000000001: Record 1 does not follow record 0: one of them was replaced\. Restore it from a copy\."
    with pytest.raises(JournalError, match=words):
        read_lineage(storage, whole=True)


def test_a_second_conditional_write_is_refused_and_changes_nothing(storage):
    storage.put_new("a/b", b"first")
    with pytest.raises(ObjectExistsError):
        storage.put_new("a/b", b"second")
    assert storage.get("a/b") == b"first"


def test_refresh_counts_what_is_new(storage):
    journal = take_over(storage, "one", newest)
    lineage = read_lineage(storage)
    journal.publish(saved(5))
    journal.publish(saved(6))
    assert refresh(storage, lineage) == 2
    assert refresh(storage, lineage) == 0
    assert [type(one) for one in lineage.starts] == [Took]


def test_an_audit_names_the_record_that_is_wrong(storage, tmp_path):
    """The record that cannot be read, or the one that names a place for the second time."""
    journal = take_over(storage, "one", newest)
    journal.publish(saved(5))
    journal.publish(saved(6, "checkpoints/5"))
    (again,) = audit(tmp_path).findings
    assert (again.kind, tmp_path / again.path) == ("journal", record(tmp_path, 2))
    assert again.text == "names checkpoints/5, which an earlier record already names"
    record(tmp_path, 1).write_bytes(b"{}\n")
    (torn,) = audit(tmp_path).findings
    assert (torn.kind, tmp_path / torn.path) == ("journal", record(tmp_path, 1))
    assert "torn or damaged" in torn.text
