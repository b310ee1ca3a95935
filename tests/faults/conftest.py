"""Fixtures that run the examples in separate processes, stop them at chosen moments, and compare what they leave."""

from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.checkpoint import read_checkpoint

HERE = Path(__file__).parent
STEPS = 60
#: The tags whose values are times.
TIMES = ("global_step/sec", "examples/sec", "seconds/")
#: The values of hooks that depend on times, and the number of timed steps, because a resumed process times fewer.
SECONDS = ("secs", "seconds", "steps")


@dataclass(frozen=True, kw_only=True)
class Example:
    """An example and how the tests run it.

    Attributes:
        name: the name of its file.
        hparams: the hyperparameters that make it short: three checkpoints with an evaluation each.
        inputs: the inputs of the default signature of the exported model, as shapes without the batch.
        folder: the folder of the file.
    """

    name: str
    hparams: dict[str, Any]
    inputs: dict[str, tuple[int, ...]]
    folder: Path = HERE.parents[1] / "examples"


EXAMPLES = {
    example.name: example
    for example in (
        Example(
            name="digits_convnet",
            hparams={"train_steps": STEPS, "min_eval_frequency": STEPS // 3},
            inputs={"image": (8, 8, 1)},
        ),
        Example(
            name="two_tower",
            hparams={"train_steps": STEPS, "evaluate_every": STEPS // 3},
            inputs={"user": (16,), "item": (16,)},
        ),
        Example(name="averaged_run", hparams={}, inputs={"x": (4,)}, folder=HERE),
    )
}


@dataclass(frozen=True, kw_only=True)
class Left:
    """The results of a run, in a form that can be compared.

    Attributes:
        arrays: bytes by item and path: weights, optimizer, model state, and arrays in the states of hooks.
        memory: the rest of the states of hooks.
        metrics: the metrics of each evaluation, by its directory and step.
        points: the points of TensorBoard as (step, value), by directory and tag, without values that are times.
        exports: the exports of each exporter in order: the step, and the outputs for fixed inputs.
        best: the stored state of the exporters of best models, without the names of exports, which are times.
    """

    arrays: dict[str, bytes]
    memory: Any
    metrics: dict[str, dict[int, dict[str, Any]]]
    points: dict[str, list[tuple[int, Any]]]
    exports: dict[str, list[Any]]
    best: dict[str, Any]


class Runs:
    """Starts runs of one example. One server process serves all of them."""

    def __init__(self, example: Example) -> None:
        self.example = example
        # The server must import the modules of its folder even if Python does not search the folder of a script.
        found = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._server = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "example_server.py"),
                str(example.folder / f"{example.name}.py"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(found)},
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"

    def run(
        self,
        directory: Path,
        moment: dict[str, Any] | None = None,
        steps_per_dispatch: Any = 1,
        *,
        model_dir: str | None = None,
    ) -> int:
        """Starts one run and returns its exit status. Its model_dir may be a URL."""
        directory.mkdir(exist_ok=True)
        asked = {
            "model_dir": model_dir or str(directory / "run"),
            "hparams": self.example.hparams,
            "steps_per_dispatch": steps_per_dispatch,
            "trace": str(directory / "trace"),
            "moment": moment,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """Ends the server."""
        self._server.communicate()


@pytest.fixture(scope="module", params=["digits_convnet"])
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The server. A test may name other examples (indirect parameters)."""
    server = Runs(EXAMPLES[request.param])
    yield server
    server.close()


@pytest.fixture(scope="module")
def whole(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Left, list[dict[str, Any]]]:
    """The results of the uninterrupted run, and its phases."""
    directory = tmp_path_factory.mktemp("whole")
    assert runs.run(directory) == 0, (directory / "trace.log").read_text()
    return what_is_left(directory, runs.example), read_trace(directory)


@pytest.fixture(scope="module")
def left(runs: Runs) -> Callable[[Path], Left]:
    """Reads the results of a run."""
    return lambda directory: what_is_left(directory, runs.example)


@pytest.fixture(scope="session")
def trace() -> Callable[[Path], list[dict[str, Any]]]:
    """Reads the phases of a run."""
    return read_trace


@pytest.fixture(scope="session")
def draw() -> Callable[..., dict[str, Any]]:
    """Returns the function that draws a moment of a phase."""
    return draw_moment


def read_trace(directory: Path) -> list[dict[str, Any]]:
    """Returns the phases of a run, as they began and ended."""
    return [json.loads(line) for line in (directory / "trace").read_text().splitlines()]


def draw_moment(moments: random.Random, whole: list[dict[str, Any]], phase: str, number: int) -> dict[str, Any]:
    """Draws a moment of a phase: its beginning, its end, or a time between, scaled by its duration in the uninterrupted
    run.
    """
    begins = [line["time"] for line in whole if line["what"] == "begin" and line["phase"] == phase]
    ends = [line["time"] for line in whole if line["what"] == "end" and line["phase"] == phase]
    occurrence = moments.randrange(len(begins))
    took = ends[occurrence] - begins[occurrence] if occurrence < len(ends) else 0.1
    at = moments.choice(["begin", moments.uniform(0, took), "end" if ends else "begin"])
    return {"phase": phase, "occurrence": occurrence, "at": at, "signal": number}


def what_is_left(directory: Path, example: Example) -> Left:
    """Reads the results of a finished run."""
    run = directory / "run"
    newest = ec.latest_checkpoint(str(run))
    assert newest is not None
    assert newest.endswith(f"/{STEPS}")
    items = read_checkpoint(newest)
    named = {"variables": items.variables, "model_state": items.model_state, "opt_state": items.opt_state}
    arrays = {f"{item}/{path}": value for item, found in named.items() for path, value in found.items()}
    memory = {name: plain(name, state, arrays) for name, state in items.hooks.items()}
    evaluations = sorted(path.name for path in run.glob("eval*"))
    return Left(
        arrays={path: np.asarray(value).tobytes() for path, value in arrays.items()},
        memory=memory,
        metrics={name: ec.read_eval_metrics(str(run / name)) for name in evaluations},
        points={f"{place}:{tag}": seen for place in (".", *evaluations) for tag, seen in points(run / place).items()},
        exports={path.name: exports(path, example) for path in sorted((run / "export").iterdir())},
        best={path.parent.name: remembered(path) for path in sorted((run / "export").glob("*/best.json"))},
    )


def plain(path: str, value: Any, arrays: dict[str, Any]) -> Any:
    """Returns the state of a hook, and adds its arrays to the others."""
    if isinstance(value, Mapping):
        left_out = SECONDS if value.keys() & {"secs", "seconds"} else ()
        return {name: plain(f"{path}/{name}", one, arrays) for name, one in value.items() if name not in left_out}
    if isinstance(value, (list, tuple)):
        return [plain(f"{path}/{number}", one, arrays) for number, one in enumerate(value)]
    if isinstance(value, np.ndarray):
        arrays[f"hooks/{path}"] = value
        return "array"
    return value


def exports(base: Path, example: Example) -> list[Any]:
    """Returns the exports in the directory of an exporter."""
    rows = {
        name: np.linspace(0, 1, 3 * math.prod(shape), dtype=np.float32).reshape(3, *shape)
        for name, shape in example.inputs.items()
    }
    found: list[Any] = []
    for path in sorted(path for path in base.iterdir() if path.name.isdigit()):
        export = ec.export.load(str(path))
        outputs = export.signatures["serving_default"](**rows)
        found.append({name: np.asarray(value).tobytes() for name, value in outputs.items()})
    return found


def remembered(path: Path) -> Any:
    """Returns the content of a file of an exporter without the names of exports."""
    return json.loads(re.sub(r"\d{10}", "", path.read_text()))


def points(directory: Path) -> dict[str, list[tuple[int, Any]]]:
    """Returns the scalars that TensorBoard's own reader finds."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory), size_guidance={"scalars": 0}).Reload()
    return {
        tag: [(event.step, None if tag.startswith(TIMES) else event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }
