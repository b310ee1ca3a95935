"""Tests of event files, which are read with TensorBoard's own reader."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from estimator_core._summaries import NO_SUMMARIES, event_file, open_summary_writer
from estimator_core.errors import ArgumentError

EVERYTHING = {"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}


def read(directory: Path) -> EventAccumulator:
    return EventAccumulator(str(directory), size_guidance=EVERYTHING).Reload()


def points(directory: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(directory).Scalars(tag)]


def shown_steps(directory: Path, tag: str) -> list[int]:
    """Returns the steps that TensorBoard's web server shows. Its reader converts every kind of summary to tensors."""
    guidance = {plugin_event_accumulator.TENSORS: 0}
    reader = plugin_event_accumulator.EventAccumulator(
        str(directory),
        size_guidance=guidance,
        tensor_size_guidance=dict.fromkeys(("scalars", "images", "histograms", "text"), 0),
    )
    return [event.step for event in reader.Reload().Tensors(tag)]


def test_every_kind_is_found_by_tensorboard(tmp_path: Path):
    writer = open_summary_writer(tmp_path / "run")
    writer.scalar("loss", np.float32(0.5), 1)
    writer.scalar("global_step/sec", 12, 101)
    writer.histogram("kernel", np.arange(12.0).reshape(3, 4), 1)
    writer.image("sample", np.full((4, 6, 3), 0.5, np.float32), 1)
    writer.text("note", "*hello*", 1)
    writer.close()
    events = read(tmp_path / "run")
    tags = events.Tags()
    assert tags["scalars"] == ["loss", "global_step/sec"]
    assert tags["histograms"] == ["kernel"]
    assert tags["images"] == ["sample"]
    assert tags["tensors"] == ["note/text_summary"]
    histogram = events.Histograms("kernel")[0].histogram_value
    assert (histogram.num, histogram.min, histogram.max, histogram.sum) == (12, 0, 11, 66)
    assert (events.Images("sample")[0].height, events.Images("sample")[0].width) == (4, 6)
    assert events.Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"*hello*"


def test_nothing_is_created_before_the_first_point(tmp_path: Path):
    writer = open_summary_writer(tmp_path / "run", resume_step=10)
    writer.flush()
    writer.close()
    assert not (tmp_path / "run").exists()


def test_one_writer_per_directory(tmp_path: Path):
    first = open_summary_writer(tmp_path / "run")
    assert open_summary_writer(str(tmp_path / "x" / ".." / "run")) is first
    assert open_summary_writer(tmp_path / "other") is not first
    first.scalar("a", 1, 1)
    open_summary_writer(tmp_path / "run").scalar("a", 2, 2)
    first.close()
    assert len(os.listdir(tmp_path / "run")) == 1
    assert points(tmp_path / "run", "a") == [(1, 1.0), (2, 2.0)]


def test_a_directory_that_is_removed_between_two_uses_gets_every_point_of_the_second(tmp_path):
    writer = open_summary_writer(tmp_path / "run")
    writer.scalar("a", 1, 1)
    writer.close()
    shutil.rmtree(tmp_path / "run")
    assert open_summary_writer(tmp_path / "run") is writer
    writer.scalar("a", 2, 2)
    writer.close()
    assert points(tmp_path / "run", "a") == [(2, 2.0)]
    open_summary_writer(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")  # within a use: it is not created again
    writer.scalar("a", 3, 3)
    writer.close()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("points_before", [0, 2])
def test_a_directory_that_is_removed_within_a_use_is_created_by_the_next_one(tmp_path: Path, points_before: int):
    (tmp_path / "run").mkdir()
    writer = open_summary_writer(tmp_path / "run")
    for step in range(points_before):
        writer.scalar("a", 1, step)
        writer.flush()
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
    writer.close()
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    open_summary_writer(tmp_path / "run")
    writer.scalar("a", 3, 3)
    writer.close()
    assert points(tmp_path / "run", "a") == [(3, 3.0)]


def test_flushed_points_are_readable_while_the_file_is_open(tmp_path: Path):
    writer = open_summary_writer(tmp_path)
    writer.scalar("a", 1, 1)
    writer.flush()
    assert points(tmp_path, "a") == [(1, 1.0)]
    writer.close()


def test_collected_numbers_keep_their_order_and_time(tmp_path: Path):
    writer = open_summary_writer(tmp_path)
    with writer.collecting():
        writer.scalar("a", 1, 1)
        before = time.time()
        assert not list(tmp_path.iterdir()), "nothing is written before it is asked for"
        writer.encode()
        writer.scalar("a", 2, 2)
        writer.text("note", "between", 2)
        writer.scalar("a", 3, 3)
        writer.flush()
        assert points(tmp_path, "a") == [(1, 1.0), (2, 2.0), (3, 3.0)]
        writer.scalar("a", 4, 4)
    writer.scalar("a", 5, 5)
    writer.close()
    events = read(tmp_path).Scalars("a")
    assert [event.step for event in events] == [1, 2, 3, 4, 5]
    assert events[0].wall_time <= before


def test_collected_numbers_are_encoded_when_they_are_many_or_have_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now = 1000.0
    monkeypatch.setattr(event_file.time, "time", lambda: now)
    writer = open_summary_writer(tmp_path)

    def written() -> bool:
        writer.encode_if_due()
        return bool(list(tmp_path.iterdir()))

    with writer.collecting():
        for step in range(31):
            writer.scalar("a", step, step)
        assert not written()
        writer.scalar("a", 31, 31)
        assert written()
        writer.flush()
        assert len(points(tmp_path, "a")) == 32
        writer.scalar("a", 32, 32)
        now += 0.4
        writer.scalar("a", 33, 33)
        writer.encode_if_due()
        assert writer._waiting
        now += 0.2
        writer.encode_if_due()
        assert not writer._waiting
    writer.close()
    assert [step for step, _ in points(tmp_path, "a")] == list(range(34))


@pytest.mark.parametrize("failing", [False, True])
def test_what_was_collected_is_written_however_it_ends(tmp_path: Path, failing: bool):
    writer = open_summary_writer(tmp_path)
    with contextlib.suppress(KeyError), writer.collecting():
        writer.scalar("a", 1, 1)
        if failing:
            raise KeyError
    writer.close()
    assert points(tmp_path, "a") == [(1, 1.0)]


def test_files_opened_within_one_second_do_not_overwrite_each_other(tmp_path: Path):
    writer = open_summary_writer(tmp_path)
    for step in range(12):
        writer.scalar("a", step, step)
        writer.close()
    assert len(os.listdir(tmp_path)) == 12
    assert points(tmp_path, "a") == [(step, float(step)) for step in range(12)]


def test_a_resumed_run_leaves_no_point_twice(tmp_path: Path):
    killed = open_summary_writer(tmp_path)
    for step in range(10, 140, 10):
        killed.scalar("loss", 1.0, step)
        killed.histogram("kernel", [1.0, 2.0], step)
        killed.text("note", "killed", step)
    killed.scalar("only/before", 1.0, 130)
    killed.close()
    resumed = open_summary_writer(tmp_path, resume_step=100)
    for step in range(110, 170, 10):
        resumed.scalar("loss", 2.0, step)
        resumed.histogram("kernel", [1.0, 2.0], step)
        resumed.text("note", "resumed", step)
    resumed.close()
    assert points(tmp_path, "loss") == [(s, 1.0) for s in range(10, 110, 10)] + [(s, 2.0) for s in range(110, 170, 10)]
    assert [event.step for event in read(tmp_path).Histograms("kernel")] == list(range(10, 170, 10))
    for tag in ("loss", "kernel", "note/text_summary"):
        assert shown_steps(tmp_path, tag) == list(range(10, 170, 10))
    assert points(tmp_path, "only/before") == []


def test_without_resume_step_earlier_points_stay(tmp_path: Path):
    writer = open_summary_writer(tmp_path)
    writer.scalar("loss", 1.0, 300)
    writer.close()
    writer.scalar("loss", 2.0, 100)
    writer.close()
    assert sorted(points(tmp_path, "loss")) == [(100, 2.0), (300, 1.0)]


KILLED = """
import os, signal, sys
from estimator_core._summaries import open_summary_writer
writer = open_summary_writer(sys.argv[1], resume_step=int(sys.argv[2]))
first = int(sys.argv[2])
for step in range(first + 1, first + 31):
    writer.scalar("loss", first, step)
    if step == first + 20:
        writer.flush()
if sys.argv[3] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
writer.close()
"""


def test_killed_processes_and_torn_files(tmp_path: Path):
    def run(first: int, how: str) -> int:
        return subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(first), how], check=False).returncode

    assert run(0, "kill") == -signal.SIGKILL
    (torn,) = tmp_path.iterdir()
    with torn.open("ab") as file:
        file.write(torn.read_bytes()[-20:-3])  # half a record after the flushed ones
    assert run(20, "kill") == -signal.SIGKILL
    assert run(30, "end") == 0
    expected = (
        [(s, 0.0) for s in range(1, 21)] + [(s, 20.0) for s in range(21, 31)] + [(s, 30.0) for s in range(31, 61)]
    )
    assert points(tmp_path, "loss") == expected


def test_histograms_leave_out_what_is_not_finite(tmp_path: Path):
    writer = open_summary_writer(tmp_path)
    writer.histogram("some", [1.0, np.nan, np.inf, -2.0], 1)
    writer.histogram("none", [np.nan], 1)
    writer.scalar("nan", np.nan, 1)
    writer.close()
    events = read(tmp_path)
    assert events.Histograms("some")[0].histogram_value.num == 2
    assert events.Tags()["histograms"] == ["some"]
    assert np.isnan(events.Scalars("nan")[0].value)


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 2), (1, 4, 4, 3)])
def test_images_of_other_shapes_are_refused(tmp_path: Path, shape: tuple[int, ...]):
    with pytest.raises(ArgumentError, match=r"Image summary 'sample': expected height x width x 1, 3 or 4 channels"):
        open_summary_writer(tmp_path).image("sample", np.zeros(shape), 1)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_refused(tmp_path: Path):
    (tmp_path / "run").write_text("")
    with pytest.raises(ArgumentError, match="it is a file"):
        open_summary_writer(tmp_path / "run")


def test_threads(tmp_path: Path):
    writer = open_summary_writer(tmp_path)
    threads = [
        threading.Thread(target=lambda tag=str(number): [writer.scalar(tag, step, step) for step in range(50)])
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert all(points(tmp_path, str(number)) == [(s, float(s)) for s in range(50)] for number in range(4))


def test_no_summaries_takes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    NO_SUMMARIES.scalar("a", 1, 1)
    NO_SUMMARIES.histogram("a", [1], 1)
    NO_SUMMARIES.image("a", np.zeros((1, 1, 1)), 1)
    NO_SUMMARIES.text("a", "b", 1)
    NO_SUMMARIES.flush()
    NO_SUMMARIES.close()
    assert list(tmp_path.iterdir()) == []


def test_importing_summaries_is_light():
    code = "import sys, estimator_core.summaries; print('tensorboardX' in sys.modules, 'jax' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False", "False"]


def test_flushed_points_are_written(tmp_path: Path):
    """This includes collected points, because the next committed checkpoint must not be ahead of the curves."""
    writer = open_summary_writer(tmp_path)
    with writer.collecting():
        writer.scalar("loss", 0.5, 1)
        writer.flush()
        assert points(tmp_path, "loss") == [(1, 0.5)]
    writer.close()
