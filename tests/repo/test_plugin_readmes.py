"""Tests that the table of a plugin's README lists exactly the components that the plugin declares."""

import importlib
import re
from pathlib import Path

ROW = re.compile(r"^\| *(\w+) *\| *`(\w+)` *\| *(.*?) *\|$", flags=re.MULTILINE)


def test_table_matches_the_records(plugin_folder: Path) -> None:
    plugin = importlib.import_module(f"estimator_{plugin_folder.name}.plugin")
    declare = getattr(plugin, "estimator_components", tuple)
    declared = {(record.kind, record.name, record.summary) for record in declare()}
    rows = ROW.findall((plugin_folder / "README.md").read_text())
    assert len(rows) == len(set(rows))
    assert set(rows) == declared


def test_summaries_are_given(plugin_folder: Path) -> None:
    plugin = importlib.import_module(f"estimator_{plugin_folder.name}.plugin")
    for record in getattr(plugin, "estimator_components", tuple)():
        assert record.summary.endswith("."), f"{record.kind} {record.name}: a summary is a sentence"
