"""A real kernel executes a notebook: the nox session `notebook`."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("notebook")
    script = Path(__file__).with_name("execute_notebook.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, timeout=280)
    return json.loads((folder / "cells.json").read_text())


def html_of(cell: dict[str, Any]) -> str:
    return "".join(output["data"].get("text/html", "") for output in cell["outputs"] if "data" in output)


def text_of(cell: dict[str, Any]) -> str:
    return "".join(output["text"] for output in cell["outputs"] if output["output_type"] == "stream")


def test_the_bar_names_what_it_waits_for_from_the_first_second(cells: dict[str, Any]) -> None:
    versions = cells["trained"]["shown"]
    opening = [version for version in versions if "opening the input" in version]
    assert len(opening) >= 3, "two seconds, twice a second"
    assert any("compiling the first step" in version for version in versions)
    assert versions.index(opening[0]) <= 1


def test_the_curve_grows(cells: dict[str, Any]) -> None:
    lines = [re.search(r'points="(.*?)"', version) for version in cells["trained"]["shown"]]
    lengths = [line[1].count(",") for line in lines if line]
    assert len(lengths) >= 2
    assert lengths == sorted(lengths)
    assert 'value="2000" max="2000"' in cells["trained"]["shown"][-1]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("estimator", ["<table>", "model_dir", "checkpoint"]),
        ("history", ["<svg", "training:"]),
        ("config", ["<table>", "save_checkpoints_steps"]),
        ("evaluated", ["<table>", "global_step", "2000"]),
    ],
)
def test_tables_stand_in_the_place_of_addresses(cells: dict[str, Any], cell: str, words: list[str]) -> None:
    assert [word for word in words if word not in html_of(cells[cell])] == []


def test_an_interrupt_ends_in_one_line(cells: dict[str, Any]) -> None:
    interrupted = cells["interrupted"]
    (error,) = (output for output in interrupted["outputs"] if output["output_type"] == "error")
    assert len(error["traceback"]) == 1
    assert "its state saved at step" in error["traceback"][0]
    assert "Traceback" not in text_of(interrupted)
    saved = error["traceback"][0].partition("at step ")[2].partition(";")[0]
    assert text_of(cells["after"]).strip().endswith(saved)
