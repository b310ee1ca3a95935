"""Tests of the output in a notebook, with a fake shell. separate/check_notebook.py uses a real one."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import PreemptedError
from estimator_core.testing import FakeRun, drive
from estimator_hooks import plugin
from estimator_hooks.notebook import html, register, shell, tables
from estimator_hooks.progress import display
from estimator_hooks.progress.figures import Figures
from estimator_hooks.progress.notebook import NotebookDisplay


class FakeShell:
    """A shell with a kernel, as IPython creates it."""

    def __init__(self) -> None:
        self.kernel = object()
        self.shown: dict[type, Any] = {}
        self.display_formatter = SimpleNamespace(
            formatters={"text/html": SimpleNamespace(for_type=self.shown.__setitem__)}
        )


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> FakeShell:
    found = FakeShell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: found))  # type: ignore[arg-type]
    return found


class Output:
    """Records every version of the output of a cell."""

    def __init__(self, html: str) -> None:
        self.versions = [html]

    def update(self, html: str) -> None:
        self.versions.append(html)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[Output]:
    outputs: list[Output] = []

    def show(html: str) -> Output:
        outputs.append(Output(html))
        return outputs[-1]

    monkeypatch.setattr(display, "notebook_display", lambda: NotebookDisplay(show))
    return outputs


def test_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object))  # type: ignore[arg-type]
    assert shell() is None
    assert display.notebook_display() is None
    register()


def test_the_bar_is_there_from_the_start_and_the_curve_grows(cell: list[Output]) -> None:
    run = FakeRun(batch_size=8)
    plugin.estimator_run_start(run)
    assert "starting" in cell[0].versions[0]
    hook = eh.ProgressBarHook()
    hook.begin(run)
    run.last_step = 4
    hook.after_create(run)
    assert "compiling the first step" in cell[0].versions[-1]
    lengths: list[int] = []
    for step in range(1, 5):
        hook.after_step(run, step, {"loss": 1.0 / step})  # type: ignore[arg-type]
        lengths.append(cell[0].versions[-1].count(","))
        assert ("<svg" in cell[0].versions[-1]) == (step > 1)
    run.step = 4
    hook.end(run)
    plugin.estimator_run_end(run)
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[1]
    assert 'value="4" max="4"' in cell[0].versions[-1]
    assert len(cell) == 1


def test_an_evaluation_inside_comes_and_goes(cell: list[Output]) -> None:
    class Evaluates(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 2 if step < 2 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            drive([eh.ProgressBarHook()], steps=4, run=FakeRun(mode="eval", name="<val>"))

    drive([eh.ProgressBarHook(), Evaluates()], steps=3)
    assert any("evaluate &lt;val&gt;" in version for version in cell[0].versions)
    assert "evaluate" not in cell[0].versions[-1]
    assert len(cell) == 1


def test_a_hook_with_its_own_output_leaves_nothing_in_the_cell(cell: list[Output]) -> None:
    output, run = io.StringIO(), FakeRun()
    plugin.estimator_run_start(run)
    drive([eh.ProgressBarHook(), eh.ProgressBarHook(output)], steps=3, run=run)
    plugin.estimator_run_end(run)
    assert output.getvalue().startswith("train: 3/3")
    assert cell[0].versions[-1] == ""


@pytest.mark.parametrize(("fail_at", "shown"), [(3, "2"), (None, "4/4 (100%)")])
def test_a_failed_call_without_a_known_end_is_not_shown_as_complete(
    cell: list[Output], fail_at: int | None, shown: str
) -> None:
    try:
        drive([eh.ProgressBarHook()], steps=4, run=FakeRun(mode="eval"), fail_at=fail_at)
    except RuntimeError:
        assert fail_at is not None
    last = cell[0].versions[-1]
    assert f"{shown}," in last
    assert ("%" in last) == ("<progress" in last) == (fail_at is None)


def test_calls_of_two_threads_both_remain_with_the_curve_of_one() -> None:
    shown = NotebookDisplay(Output)
    first, second = (shown.open(name, inside=False) for name in ("one", "two"))
    for call, loss, step in ((first, 0.5, 1), (second, 9.0, 2), (first, 0.25, 3), (second, 9.0, 4)):
        shown.show(call, figures(step, loss))
    shown.close(first, figures(5, 0.125))
    shown.show(second, figures(6, 9.0))
    shown.close(second, figures(7, 9.0))
    assert shown._points == [(1, 0.5), (3, 0.25), (5, 0.125)]
    last = shown._handle.versions[-1]
    assert "one" in last
    assert "two" in last


def figures(done: int, loss: float) -> Figures:
    return Figures(done=done, total=9, loss=loss, steps_per_sec=1.0, examples_per_sec=None, secs_left=None, elapsed=1.0)


def test_a_call_without_a_step_says_so(cell: list[Output]) -> None:
    run = FakeRun()
    plugin.estimator_run_start(run)
    plugin.estimator_run_end(run)
    assert "ended before its first step" in cell[0].versions[-1]
    assert "<progress" not in cell[0].versions[-1]


def test_a_long_run_keeps_few_points_and_both_ends() -> None:
    outputs: list[Output] = []

    def show(html: str) -> Output:
        outputs.append(Output(html))
        return outputs[-1]

    shown = NotebookDisplay(show)
    for step in range(2000):
        shown._add(step, float(step))
    assert len(shown._points) <= 401
    assert (shown._points[0][0], shown._points[-1][0]) == (0, 1999)
    shown._add(5, 0.0)  # a second call with lower steps adds nothing
    assert shown._points[-1][0] == 1999


def test_what_is_registered(notebook: FakeShell) -> None:
    plugin.estimator_components()
    assert set(notebook.shown) == {ec.RunConfig, dict}


def test_an_interrupt_is_one_line_in_a_notebook() -> None:
    error = PreemptedError("Training was interrupted (SIGINT) and its state saved at step 7.", step=7)
    assert error._render_traceback_() == [str(error)]  # the method that IPython calls on an exception


def test_tables_escape_what_they_show() -> None:
    assert "<script>" not in html.table(["<script>"], [["<script>"]])
    assert html.curve([(1, 1.0)]) == ""
    assert html.text("x" * 200).endswith("...")
    assert html.text(0.123456789) == "0.12346"


def test_the_table_of_a_config_begins_with_what_was_changed() -> None:
    shown = tables.config_html(ec.RunConfig(model_dir="<here>", save_checkpoints_steps=7))
    changed, others = shown.split("<details>")
    assert "&lt;here&gt;" in changed
    assert "save_checkpoints_steps" in changed
    assert "prefetch" in others


def test_metrics_and_other_dictionaries() -> None:
    shown = tables.metrics_html({"global_step": 3, "loss": 0.25, "slices": [{}]})
    assert shown is not None
    assert "0.25" in shown
    assert "slices" not in shown
    assert tables.metrics_html({"loss": 0.25}) is None
    assert tables.metrics_html({"global_step": 3, 4: 5}) is None


def test_history_and_estimator(tmp_path: Any) -> None:
    history = SimpleNamespace(
        train=[{"step": step, "loss": 1.0 / (1 + step)} for step in range(50)],
        evaluations=[{"name": None, "global_step": 50, "loss": 0.1, "slices": [1]}],
        stop_reason="reached step 50",
    )
    shown = tables.history_html(history)
    assert "training: 50 rows, the newest 20" in shown
    assert "slices" not in shown
    assert "<svg" in shown
    (tmp_path / "export" / "final" / "1234567890").mkdir(parents=True)
    estimator = SimpleNamespace(model_dir=str(tmp_path), stop_reason=None)
    assert "not by this object" in tables.estimator_html(estimator)
