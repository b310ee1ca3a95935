"""Reads the programs of styles.txt and the marks on their lines."""

import re
from pathlib import Path

_MARK = re.compile(r"\s+#([:?]) (.*)$")


def programs() -> dict[str, str]:
    """Returns the sources by title."""
    text = Path(__file__).with_name("styles.txt").read_text(encoding="utf-8")
    parts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def source_of(program: str) -> str:
    """Returns a program without its marks."""
    return "".join(f"{_MARK.sub('', line)}\n" for line in program.splitlines())


def expected(program: str) -> list[tuple[int, str, bool]]:
    """Returns the line, the name and whether it is unknown, for every mark."""
    found = []
    for number, line in enumerate(program.splitlines(), 1):
        mark = _MARK.search(line)
        if mark:
            names = [mark[2]] if mark[1] == "?" else mark[2].split()
            found += [(number, name, mark[1] == "?") for name in names]
    return sorted(found)
