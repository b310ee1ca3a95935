"""Tests that every Python block of the README, docs/ and the plugins' READMEs runs, in order, with one namespace per
document.

A block that only shows a form is fenced as `text`. Every block fenced as `python` runs.
"""

import re
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")]
    if "```python" in path.read_text()
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_python_block_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # snippets write their files here
    document = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).parse(path)
    blocks = list(document.examples())
    assert len(blocks) == len(re.findall(r"^ *```python", path.read_text(), flags=re.MULTILINE))
    for block in blocks:
        block.evaluate()


def test_a_failing_block_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "broken.md"
    path.write_text("```python\nassert 1 + 1 == 3\n```\n")
    (block,) = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).parse(path).examples()
    with pytest.raises(AssertionError):
        block.evaluate()
