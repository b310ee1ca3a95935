"""Tests that files are short and hold no trace of the machine they were written on, and that documents are correct."""

import os
import re
import statistics
from pathlib import Path

import pytest

LONGEST, LONG, SHARE_OF_LONG, MEDIAN = 600, 400, 0.05, 160
README_LINES = 120
COMMANDS = (
    "python -m pip install uv && uv run estimator run examples/digits_convnet.py",
    "python -m pip install uv && uv run nox",
)
# The patterns are composed of parts, so that this file does not match its own rule.
MACHINE_PATH = re.compile("|".join(rf"(?<![\w.~/-])/{folder}/" for folder in ("work", "tmp", "root", "home", "Users")))
REGISTRY = re.compile("|".join(("pypi" r"\.org", "python" r"hosted\.org", "ana" r"conda\.org", "conda" r"-forge\.org")))
DOWNLOAD = re.compile(r"https?://\S+\.(whl|tar" r"\.gz|zip)\b")


def lines_of(path: Path) -> int:
    return path.read_text().count("\n")


@pytest.fixture(scope="module")
def sources(files: list[Path]) -> list[Path]:
    return [path for path in files if path.suffix in {".py", ".pyi"} and path.stat().st_size]


@pytest.fixture(scope="module")
def texts(files: list[Path]) -> dict[Path, str]:
    """The content of every text file."""
    return {path: path.read_text() for path in files if b"\0" not in path.read_bytes()[:8192]}


def test_no_source_file_is_too_long(sources: list[Path]) -> None:
    assert {str(path): lines_of(path) for path in sources if lines_of(path) > LONGEST} == {}


def test_most_source_files_are_short(sources: list[Path]) -> None:
    lengths = [lines_of(path) for path in sources]
    assert statistics.median(lengths) <= MEDIAN
    assert sum(length > LONG for length in lengths) <= SHARE_OF_LONG * len(lengths)


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY, DOWNLOAD], ids=["machine path", "registry", "download"])
def test_nothing_of_the_machine_is_tracked(texts: dict[Path, str], root: Path, pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (MACHINE_PATH, "open('" + "/" + "work/data')"),
        (REGISTRY, "index = 'https://" + "pypi." + "org/simple'"),
        (DOWNLOAD, "https://example.test/a-1.0" + ".whl"),
    ],
)
def test_the_rules_find_what_they_forbid(pattern: re.Pattern[str], line: str) -> None:
    assert pattern.search(line)


def test_no_lock_file_is_tracked(files: list[Path]) -> None:
    assert [path.name for path in files if re.fullmatch(r"(uv|poetry)\.lock|pylock.*\.toml", path.name)] == []


def test_readme_is_short_and_has_the_two_commands(root: Path) -> None:
    lines = (root / "README.md").read_text().splitlines()
    assert len(lines) < README_LINES
    assert [line for line in lines if "pip install" in line] == list(COMMANDS)


def test_ci_runs_the_second_command(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    install, run = COMMANDS[1].split(" && ")
    text = script.read_text()
    assert install.replace("install", "install --quiet") in text
    assert run in text


def test_links_in_documents_lead_somewhere(texts: dict[Path, str], root: Path) -> None:
    broken = [
        f"{path.relative_to(root)}: {target}"
        for path, text in texts.items()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert broken == []
