"""Tests that the page of the export matrix has the recorded state of each cell. A few cells are tried again."""

import json
import re
from pathlib import Path

import pytest

from tests.export_matrix.every import every_case
from tests.export_matrix.joined import ALONE, operations
from tests.export_matrix.page import COLUMNS, MODES, Cell, differing, found_in, parsed, said, shown
from tests.export_matrix.programs import PROGRAMS
from tests.export_matrix.write import _cells, written

PAGE = Path(__file__).parents[2] / "docs" / "export_matrix.md"
CELLS = parsed(PAGE.read_text())
CASES = {(case.group, *case.row): case for case in every_case()}


def test_every_cell_of_the_page_is_a_number_or_a_refusal_in_words():
    rows = {key[:3] for key in CELLS}
    assert rows <= CASES.keys()
    assert CELLS.keys() == {(*row, *column) for row in rows for column in COLUMNS}
    for key, text in CELLS.items():
        number = re.fullmatch(r"0|1e(-\d+)", text)
        assert number or len(text) > 40, (key, text)
        limit = -1 if "bfloat16 outputs" in key else -5
        assert not number or text == "0" or int(number.group(1)) <= limit, (key, text)


@pytest.mark.parametrize(
    "row",
    [
        "top_k",
        "sort",
        "dropout in train mode",
        "while loop",
        "batch norm",
        "row-sparse look-up",
        "bfloat16 inside",
        "bfloat16 outputs",
    ],
)
def test_this_operation_is_read_by_the_oldest_readers_or_refused_by_name(row):
    texts = {column: CELLS[("programs", row, "", *column)] for column in COLUMNS}
    for (form, mode), text in texts.items():
        is_read = re.fullmatch(r"0|1e-\d+", text)
        assert is_read or (text.startswith("Signature '...'") and "format 'stablehlo'" in text), (form, mode, text)
        assert is_read or form == "onnx", (form, mode, text)


@pytest.mark.parametrize("row", ["gather along the batch", "print"])
def test_bundles_of_operations_are_as_the_page_says(tmp_path, row):
    case = CASES[("programs", row, "")]
    cells = written(case, [("stablehlo", "infer")], tmp_path)
    assert len(cells) == 1
    key = ("programs", row, "", "stablehlo", "infer")
    assert differing({key: one(cells[0])}, PAGE.read_text()) == []


@pytest.mark.slow
def test_operations_in_one_model_are_as_the_page_says(tmp_path):
    names = [name for name in PROGRAMS if name not in ALONE and ("programs", name, "", *COLUMNS[0]) in CELLS]
    states = _cells(operations(names), "stablehlo", tmp_path, list(MODES))
    assert [(cell["mode"], cell["state"]) for cell in states] == [(mode, "works") for mode in MODES]
    texts = {CELLS[("programs", name, "", "stablehlo", mode)] for name in names for mode in MODES}
    assert all(re.fullmatch(r"0|1e-\d+", text) for text in texts), texts


def test_the_cut_of_the_session_has_every_row_and_every_column():
    assert {case.cut for case in CASES.values()} == set(COLUMNS)


def one(cell):
    """Returns a cell as the readers leave it, after the core has compared the bundle with the model."""
    return Cell(differences={"jax": 0.0} if cell["state"] == "works" else {}, words=said(cell["words"]))


def cell_of(state, words=""):
    return {"name": "a", "group": "programs", "row": ["a", ""], "format": "onnx", "mode": "infer"} | {
        "state": state,
        "words": words,
    }


def laid(tmp_path, cell, *readers):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "cells.json").write_text(json.dumps([cell]))
    for reader, read in readers:
        result = {"reader": reader, "format": "onnx", "cells": read}
        (tmp_path / "a" / f"read_{reader}.json").write_text(json.dumps(result))
    return found_in(tmp_path)


def test_a_cell_that_a_reader_fails_on_is_wrong(tmp_path):
    failed = [{**cell_of("failed", "it differs by 0.1")}]
    _, wrong = laid(tmp_path, cell_of("works"), ("old", failed), ("new", [{**cell_of("works"), "difference": 0.0}]))
    assert any("old fails: it differs by 0.1" in line for line in wrong)
    assert any("read by ['new'] of ['new', 'old']" in line for line in wrong)


@pytest.mark.parametrize("state", ["late", "failed"])
def test_there_is_no_third_state(tmp_path, state):
    _, wrong = laid(tmp_path, cell_of(state, "it broke"))
    assert wrong == [f"('programs', 'a', '', 'onnx', 'infer'): {state}: it broke"]


def test_a_page_that_says_something_else_is_noticed():
    keys = [("programs", "a", "", *column) for column in COLUMNS]
    refused = Cell(differences={}, words="Signature '...' sorts, and this format does not.")
    works = Cell(differences={"old": 3e-7, "new": 0.0}, words="")
    page = shown({key: refused if key[3] == "onnx" else works for key in keys}, 1)
    assert parsed(page)[keys[0]] == "1e-6"
    assert differing({keys[0]: works, keys[-1]: refused}, page) == []
    assert "refused, and" not in page
    assert len(differing({keys[0]: refused, keys[-1]: works}, page)) == 2
    assert len(differing({("programs", "b", "", "onnx", "infer"): works}, page)) == 1
