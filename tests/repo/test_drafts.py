"""Tests that all files that appear whole are written by one mechanism."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_writer_names_its_drafts_by_itself():
    sources = [*ROOT.glob("estimator_core/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    by_process = re.compile(r"""f["'][^"'\n]*\{os\.getpid\(\)\}|["']\.draft["']""")
    found = {file.name for file in sources if by_process.search(file.read_text(encoding="utf-8"))}
    assert found == {"identity.py", "working_copy.py"}, "these are names of processes; files are written by `draft_of`"
