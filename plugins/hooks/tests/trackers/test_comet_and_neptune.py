"""Tests of CometTracker and NeptuneTracker with stand-ins for the servers, and with the libraries offline."""

import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_hooks as eh
from estimator_core.testing import drive
from plugins.hooks.tests.trackers.test_tracker_hook import KEPT, EveryStep, fake_run, leave_record

OUTPUTS = {"loss": lambda step: np.float32(step)}


class Server:
    """Keeps runs by their key. It replaces both libraries, as far as the trackers use them."""

    def __init__(self) -> None:
        self.points: dict[str, list[tuple[int, float]]] = {}
        self.values: dict[str, Any] = {}
        self.starts: list[Mapping[str, Any]] = []
        self.ended = 0
        self.kept: dict[str, str] = {}

    def log_metric(self, name: str, value: float, *, step: int) -> None:
        self.points.setdefault(name, []).append((step, value))

    def start(self, **given: Any) -> Any:
        self.starts.append(given)

        def end() -> None:
            self.ended += 1

        return SimpleNamespace(
            set_name=lambda name: self.values.update(name=name),
            log_parameters=self.values.update,
            log_metric=self.log_metric,
            log_other=lambda name, value: self.values.update({name: value}),
            log_asset_data=lambda data, name, overwrite: self.kept.update({name: data}),
            get_key=lambda: given["experiment_key"] or "key",
            end=end,
        )

    def get_experiment_by_key(self, key: str) -> Any:
        assert key == "key"

        def points(name: str) -> list[dict[str, Any]]:
            return [{"step": step} for step, _ in self.points.get(name, [])]

        return SimpleNamespace(get_metrics=points)

    def init_run(self, **given: Any) -> Any:
        self.starts.append(given)
        server = self

        class NeptuneRun:
            def __setitem__(self, name: str, value: Any) -> None:
                server.values[name] = value

            def __getitem__(self, name: str) -> Any:
                known = server.points.get(name, [])
                return SimpleNamespace(
                    upload=lambda data: server.kept.update({name.removeprefix("record/"): data}),
                    append=lambda value, step: server.log_metric(name, value, step=step),
                    fetch_values=lambda include_timestamp: {"step": [float(step) for step, _ in known]},
                )

            def exists(self, name: str) -> bool:
                return name in server.points

            def stop(self) -> None:
                server.ended += 1

        return NeptuneRun()


@pytest.mark.parametrize(
    ("library", "tracker"),
    [("comet_ml", lambda **more: eh.CometTracker("digits", **more)),
     ("neptune", lambda **more: eh.NeptuneTracker("acme/digits", **more))],
)  # fmt: skip
def test_a_killed_and_resumed_run_has_every_point_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, tracker: Any
):
    server = Server()
    module = SimpleNamespace(start=server.start, init_run=server.init_run, API=lambda: server)
    types = SimpleNamespace(File=SimpleNamespace(from_content=lambda text, extension: text))
    for name, one in {library: module, "neptune.types": types}.items():
        monkeypatch.setitem(sys.modules, name, one)
    leave_record(tmp_path / "digits")
    run = fake_run(tmp_path / "digits", params={"rate": 0.1, "layers": [2]})
    with pytest.raises(RuntimeError, match="the loop fails"):
        drive([EveryStep(), eh.TrackerHook(tracker(), 2)], steps=20, run=run, outputs=OUTPUTS, fail_at=9)
    assert server.values["ending"] == "failed"
    assert server.kept == KEPT
    drive([eh.TrackerHook(tracker(), 2)], steps=14, run=fake_run(tmp_path / "digits", step=4), outputs=OUTPUTS)
    assert server.points["train/loss"] == [(step, float(step)) for step in range(2, 19, 2)]
    assert (server.values["params/rate"], server.values["params/layers"]) == (0.1, "[2]")
    assert (server.values["ending"], server.ended) == ("finished", 2)
    first, second = (one.get("custom_run_id") or one.get("experiment_key") for one in server.starts)
    assert second == (first or "key")


@pytest.mark.libraries
@pytest.mark.filterwarnings("ignore")
def test_comet_writes_a_run_offline(tmp_path: Path):
    comet = pytest.importorskip("comet_ml", reason="comet-ml is not installed: estimator-hooks[comet]")
    config = comet.ExperimentConfig(offline_directory=str(tmp_path / "offline"), log_code=False)
    leave_record(tmp_path / "run")
    tracker = eh.CometTracker("digits", online=False, experiment_config=config)
    drive([eh.TrackerHook(tracker, 2)], steps=7, run=fake_run(tmp_path / "run"), outputs=OUTPUTS)
    (written,) = (tmp_path / "offline").glob("*.zip")
    kept = [
        zipfile.ZipFile(written).read(name).decode(errors="replace") for name in zipfile.ZipFile(written).namelist()
    ]
    assert set(KEPT.values()) <= set(kept)


@pytest.mark.libraries
@pytest.mark.filterwarnings("ignore")
def test_neptune_writes_a_run_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("neptune", reason="neptune is not installed: estimator-hooks[neptune]")
    monkeypatch.chdir(tmp_path)
    leave_record(tmp_path / "run")
    quiet = {"capture_stdout": False, "capture_stderr": False, "capture_hardware_metrics": False, "git_ref": False}
    tracker = eh.NeptuneTracker("acme/digits", mode="offline", source_files=[], **quiet)
    drive([eh.TrackerHook(tracker, 2)], steps=7, run=fake_run(tmp_path / "run"), outputs=OUTPUTS)
    written = "".join(path.read_text() for path in (tmp_path / ".neptune").rglob("data-*.log"))
    assert '"value": 6.0' in written
    assert '"finished"' in written
    uploads = {path.name.partition("-")[0]: path.read_text() for path in (tmp_path / ".neptune").rglob("record_*")}
    assert uploads == {f"record_{name}": text for name, text in KEPT.items()}
