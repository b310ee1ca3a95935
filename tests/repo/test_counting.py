"""Tests of what counts as a code line, and where `Any` counts."""

from pathlib import Path

from tests.repo.counting import Count, count_rooms, count_source, total

SOURCE = '''"""A module.

With two paragraphs.
"""

from typing import (
    Any,
)

LIMIT = 3  # a comment beside code


# a comment alone
def function(given: Any, other: "Any") -> dict[str, Any]:
    """A contract."""
    text = """a string
    of two lines, Any"""
    return {text: given}
'''


def test_what_counts() -> None:
    # from, Any, ); LIMIT; def, the string's two lines, return. Any: given and the value of dict.
    assert count_source(SOURCE) == Count(lines=8, any_names=2)


def test_rooms_are_folders_and_single_files(tmp_path: Path) -> None:
    for name in ("one.py", "room/a.py", "room/deep/b.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOURCE)
    rooms = count_rooms(tmp_path)
    assert {room: one.lines for room, one in rooms.items()} == {"one.py": 8, "room": 16}
    assert total(rooms.values()) == Count(lines=24, any_names=6)
    assert total(rooms.values()).any_density == 250
    assert total([]).any_density == 0
