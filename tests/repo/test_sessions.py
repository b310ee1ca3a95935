"""Tests that the tables of CONTRIBUTING.md name every nox session, and no other one."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SESSION = re.compile(r"^(?P<mark>[*-]) (?P<name>[\w-]+?)(-3\.\d+)?(\(.*?\))?( -> .*)?$", re.MULTILINE)


def sessions() -> tuple[set[str], set[str]]:
    """Returns the names of the default sessions, and of those that run only when named."""
    listed = subprocess.run([sys.executable, "-m", "nox", "-l"], cwd=ROOT, capture_output=True, text=True, check=True)
    found = [
        (each["mark"], re.sub("^plugin-.*", "plugin-<x>", each["name"])) for each in SESSION.finditer(listed.stdout)
    ]
    default = {name for mark, name in found if mark == "*"}
    return default, {name for _, name in found} - default


def test_the_tables_name_every_session() -> None:
    _, first, second = (ROOT / "CONTRIBUTING.md").read_text().split("|---|---|\n")
    tables = [re.findall(r"^\| (.*?) \|", text.partition("\n\n")[0], re.MULTILINE) for text in (first, second)]
    named = [{name.strip("`") for cell in table for name in cell.split(", ")} for table in tables]
    assert named == list(sessions())
