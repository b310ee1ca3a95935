"""Tests of progress as lines, as a bar in a terminal, and with an evaluation during training."""

import io
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import estimator_hooks as eh
from estimator_core.hooks import Wake
from estimator_core.testing import FakeRun, drive
from estimator_hooks import plugin
from estimator_hooks.progress import display, hook, waiting
from estimator_hooks.progress.bar import BarDisplay
from estimator_hooks.progress.figures import Pace
from estimator_hooks.progress.lines import LineDisplay


class Clock:
    """A clock that advances with the computed steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, secs_per_step: float) -> None:
        self.now = 1000.0
        self._secs = secs_per_step
        monkeypatch.setattr(hook.time, "monotonic", lambda: self.now)

    def outputs(self) -> dict[str, Callable[[int], Any]]:
        def loss(step: int) -> Any:
            self.now = 1000.0 + self._secs * step
            return np.float32(1.0 / step)

        return {"loss": loss}


def test_lines(monkeypatch: pytest.MonkeyPatch):
    clock, output = Clock(monkeypatch, 2.0), io.StringIO()
    drive([eh.ProgressBarHook(output)], steps=16, outputs=clock.outputs(), run=FakeRun(batch_size=8))
    assert output.getvalue().splitlines() == [
        "train: 7/16 (43%), loss 0.14286, 0.5 steps/s, 4 examples/s, 0:00:12 elapsed, 0:00:18 left",
        "train: 13/16 (81%), loss 0.076923, 0.5 steps/s, 4 examples/s, 0:00:24 elapsed, 0:00:06 left",
        "train: 16/16 (100%), loss 0.0625, 0.5 steps/s, 4 examples/s, 0:00:30 elapsed, 0:00:00 left",
    ]


def test_a_short_last_batch_does_not_change_the_rate(monkeypatch: pytest.MonkeyPatch):
    clock, output, run = Clock(monkeypatch, 2.0), io.StringIO(), FakeRun(batch_size=8)

    class Shortens(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 16 if step < 16 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            run.batch_size = 2

    drive([Shortens(), eh.ProgressBarHook(output)], steps=16, outputs=clock.outputs(), run=run)
    assert "train: 16/16 (100%), loss 0.0625, 0.5 steps/s, 4 examples/s" in output.getvalue().splitlines()[-1]


def test_a_run_that_ends_between_two_readings_shows_no_loss_of_an_earlier_step(monkeypatch: pytest.MonkeyPatch):
    clock, output = Clock(monkeypatch, 0.5), io.StringIO()

    class Stops(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 5 if step < 5 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            out["loss"]
            run.request_stop("enough")

    drive([eh.ProgressBarHook(output), Stops()], steps=16, outputs=clock.outputs(), run=FakeRun(batch_size=8))
    assert output.getvalue() == "train: 5/16 (31%), 2 steps/s, 16 examples/s, 0:00:02 elapsed, 0:00:05 left\n"


def test_between_two_readings_nothing_is_read(monkeypatch: pytest.MonkeyPatch):
    read: list[int] = []

    class Out(dict):
        def __getitem__(self, name: str) -> Any:
            read.append(1)
            return np.float32(0.5)

    monkeypatch.setattr(hook.time, "monotonic", lambda: 5.0)
    shown = eh.ProgressBarHook(io.StringIO())
    run = FakeRun(last_step=None)
    shown.begin(run)
    shown.after_create(run)
    shown.after_step(run, 1, Out())  # type: ignore[arg-type]
    assert shown.next_step(1) == Wake(time=15.0)
    assert len(read) == 1
    shown.end(run)


def test_the_hook_given_explicitly_takes_the_place_of_the_default():
    default, given = io.StringIO(), io.StringIO()
    drive([eh.ProgressBarHook(default), eh.ProgressBarHook(given)], steps=3)
    assert default.getvalue() == ""
    assert given.getvalue().startswith("train: 3/3 (100%)")
    assert hook._chosen == {}


def test_a_short_evaluation_inside_gives_no_line():
    output = io.StringIO()

    class Evaluates(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 2 if step < 2 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            drive([eh.ProgressBarHook(output)], steps=4, run=FakeRun(mode="eval", name="val"))

    drive([eh.ProgressBarHook(output), Evaluates()], steps=3)
    assert [line.split(":")[0] for line in output.getvalue().splitlines()] == ["train"]
    drive([eh.ProgressBarHook(output)], steps=4, run=FakeRun(mode="eval", name="val", last_step=4))
    assert output.getvalue().splitlines()[-1].startswith("evaluate val: 4/4")
    drive([eh.ProgressBarHook(output)], steps=4, run=FakeRun(mode="eval", name="val"))
    assert output.getvalue().splitlines()[-1].startswith("evaluate val: 4,")


def test_a_failed_run_gives_its_display_back():
    output = io.StringIO()
    with pytest.raises(RuntimeError, match="the loop fails"):
        drive([eh.ProgressBarHook(output)], steps=9, fail_at=4)
    assert output.getvalue().startswith("train: 3/9")
    assert display.shared._displays == {}


class Together(eh.Hook):
    """Waits at the first step for the call of another thread."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def next_step(self, step: int) -> int | None:
        return 1 if step < 1 else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self._barrier.wait(timeout=60)


def evaluate_twice_at_a_time(output: io.StringIO | None) -> None:
    """Two threads evaluate one Estimator. Both calls have begun before either has a step."""
    first = FakeRun(mode="eval")
    barrier = threading.Barrier(2)

    def evaluate(steps: int) -> None:
        run = FakeRun(mode="eval", config=first.config)
        plugin.estimator_run_start(run)
        barrier.wait(timeout=60)
        drive([eh.ProgressBarHook(output), Together(barrier)], steps=steps, run=run)
        plugin.estimator_run_end(run)

    threads = [threading.Thread(target=evaluate, args=(steps,)) for steps in (3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_two_evaluations_at_a_time_are_two_lines_and_give_their_display_back():
    output = io.StringIO()
    evaluate_twice_at_a_time(output)
    assert sorted(line.split(",")[0] for line in output.getvalue().splitlines()) == ["evaluate: 3", "evaluate: 5"]
    assert display.shared._displays == {}
    assert waiting._waiting == {}
    assert hook._chosen == {}


def test_predictions_that_another_thread_ends_leave_nothing():
    bar, run = eh.ProgressBarHook(io.StringIO()), FakeRun(mode="infer")
    bar.begin(run)
    bar.after_create(run)
    thread = threading.Thread(target=bar.end, args=(run,))
    thread.start()
    thread.join()
    assert display.shared._displays == {}
    assert hook._chosen == {}


class SlowlyCounted(dict[int, str]):
    def __len__(self) -> int:
        found = super().__len__()
        time.sleep(0.05)
        return found


def test_calls_that_begin_at_the_same_time_have_a_line_each():
    output = io.StringIO()
    outer = display.shared.open(output, "outer")
    lines = outer.display
    assert isinstance(lines, LineDisplay)
    lines._names = SlowlyCounted(lines._names)
    shown: list[display.Shown] = []
    threads = [threading.Thread(target=lambda: shown.append(display.shared.open(output, "inner"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one._call for one in [outer, *shown]) == [0, 1, 2, 3]
    for one in [*shown, outer]:
        one.close(None)
    assert display.shared._displays == {}


def test_a_hook_shows_its_call_and_what_is_inside_in_its_own_output(capsys: pytest.CaptureFixture[str]):
    output = io.StringIO()

    class Evaluates(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 2 if step < 2 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            inner = FakeRun(mode="eval", name="val")
            plugin.estimator_run_start(inner)
            drive([eh.ProgressBarHook()], steps=4, run=inner)
            plugin.estimator_run_end(inner)

    run = FakeRun()
    plugin.estimator_run_start(run)
    drive([eh.ProgressBarHook(), eh.ProgressBarHook(output), Evaluates()], steps=3, run=run)
    plugin.estimator_run_end(run)
    assert [line.split(":")[0] for line in output.getvalue().splitlines()] == ["train"]
    assert capsys.readouterr().err == ""
    assert display.shared._displays == {}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=130, color_system=None)
    monkeypatch.setattr(display, "make_display", lambda output: BarDisplay(console))
    return stream


def test_bar(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch, 0.5)
    drive([eh.ProgressBarHook()], steps=20, outputs=clock.outputs(), run=FakeRun(batch_size=8))
    last = " ".join(terminal.getvalue().splitlines()[-3:])
    for part in ("train", "20/20", "loss 0.05", "2 steps/s 16 ex/s", "0:00:09 < 0:00:00"):
        assert part in last


def test_bar_of_an_evaluation_comes_and_goes(terminal: io.StringIO):
    class Evaluates(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 2 if step < 2 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            drive([eh.ProgressBarHook()], steps=4, run=FakeRun(mode="eval", name="val"))

    drive([eh.ProgressBarHook(), Evaluates()], steps=3)
    assert "evaluate val" in terminal.getvalue()
    assert "evaluate val" not in " ".join(terminal.getvalue().splitlines()[-2:])


def test_bars_of_two_threads_both_remain(terminal: io.StringIO):
    evaluate_twice_at_a_time(None)
    drawn = terminal.getvalue().splitlines()
    assert sorted(re.findall(r"evaluate ━* *(\d) ", " ".join(drawn[-3:]))) == ["3", "5"]


def test_log_lines_appear_above_the_bar(terminal: io.StringIO):
    logger, handler = logging.getLogger("estimator_hooks"), logging.StreamHandler(sys.__stderr__)
    logger.addHandler(handler)
    before = sys.stderr
    try:

        class Logs(eh.Hook):
            def next_step(self, step: int) -> int | None:
                return step + 1

            def after_step(self, run: Any, step: int, out: Any) -> None:
                logger.warning("line of step %d", step)

        drive([eh.ProgressBarHook(), Logs()], steps=3)
    finally:
        logger.removeHandler(handler)
    assert "line of step 3" in terminal.getvalue()
    assert sys.stderr is before
    assert handler.stream is sys.__stderr__


def test_unknown_total(terminal: io.StringIO):
    run = FakeRun()
    shown = eh.ProgressBarHook()
    shown.begin(run)
    shown.after_create(run)
    shown.after_step(run, 1, {"loss": np.float32(2.0)})  # type: ignore[arg-type]
    shown.end(run)
    assert "loss 2" in terminal.getvalue()


def test_pace_forgets_what_is_older_than_its_window():
    pace = Pace(window_secs=10.0)
    for second in range(100):
        pace.add(float(second), second * (1 if second < 50 else 3))
    assert pace.steps_per_sec == pytest.approx(3.0)
    assert Pace().steps_per_sec is None


@pytest.mark.parametrize(("secs", "rate"), [(0.01, None), (20.0, 0.0)])
def test_a_call_of_one_batch_has_no_rate_and_one_that_stands_still_has(secs: float, rate: float | None):
    pace = Pace()
    pace.add(100.0, 1)
    pace.add(100.0 + secs, 1)
    assert pace.steps_per_sec == rate


@pytest.mark.parametrize("mode", ["train", "eval", "infer"])
def test_the_default_hooks_of_the_plugin(mode: str):
    from estimator_hooks.plugin import estimator_run_hooks

    kinds = [type(made) for made in estimator_run_hooks(FakeRun(mode=mode))]
    assert kinds == ([] if mode == "infer" else [eh.ProgressBarHook])


def test_a_log_file_does_not_wait_for_rich():
    code = "import sys; from estimator_hooks.progress.display import make_display; make_display(sys.stderr)"
    show = f"{code}; print([name for name in sys.modules if name.partition('.')[0] == 'rich'])"
    result = subprocess.run([sys.executable, "-c", show], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"


def test_an_output_may_be_said_to_be_a_terminal(monkeypatch: pytest.MonkeyPatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert not isinstance(display.make_display(io.StringIO()), BarDisplay)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(display.make_display(io.StringIO()), BarDisplay)


def test_what_stands_in_for_stderr_needs_no_isatty():
    class Tee:
        def write(self, text: str) -> int:
            return len(text)

        def flush(self) -> None: ...

    closed = io.StringIO()
    closed.close()
    for output in (Tee(), closed):
        assert not isinstance(display.make_display(output), BarDisplay)  # type: ignore[arg-type]


class Breaks(io.StringIO):
    """A terminal or a file that takes some writes, and then none."""

    def __init__(self, *, writes: int, terminal: bool, error: Exception) -> None:
        super().__init__()
        self.left, self.refused = writes, 0
        self._terminal, self._error = terminal, error

    def isatty(self) -> bool:
        return self._terminal

    def write(self, s: str, /) -> int:
        self.left -= 1
        if self.left < 0:
            self.refused += 1
            raise self._error
        return super().write(s)

    def flush(self) -> None:
        if self.left < 0:
            raise self._error


@pytest.mark.parametrize("error", [OSError(28, "No space left"), BrokenPipeError(), ValueError("I/O on closed file")])
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("writes", [0, 1])
def test_an_output_that_breaks_ends_no_run(
    monkeypatch: pytest.MonkeyPatch, writes: int, terminal: bool, error: Exception
):
    monkeypatch.setenv("TERM", "xterm")
    clock, output = Clock(monkeypatch, 2.0), Breaks(writes=writes, terminal=terminal, error=error)
    before = sys.stdout, sys.stderr
    drive([eh.ProgressBarHook(output)], steps=16, outputs=clock.outputs(), run=FakeRun(batch_size=8))
    assert output.refused > 0
    assert (sys.stdout, sys.stderr) == before


def test_a_process_without_stderr_trains(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch, 2.0)
    monkeypatch.setattr(sys, "stderr", None)
    drive([eh.ProgressBarHook()], steps=16, outputs=clock.outputs(), run=FakeRun(batch_size=8))
    assert clock.now > 1000.0
