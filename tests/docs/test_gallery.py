"""Tests that the gallery shows the output of its programs, and reports a program without output."""

import json
from pathlib import Path

import pytest

from docs.site import changes, gallery
from docs.site.api import TREE
from docs.site.versions import write_list

PAGE = """Words.

```python
from pathlib import Path

Path("gallery").mkdir()
Path("gallery/one.html").write_text("<p>1</p>")
```
"""


def test_a_frame_and_a_link_stand_below_the_program() -> None:
    shown = gallery.shown(PAGE)
    assert shown.index("```\n\n<iframe") < shown.index("[Open one.html](gallery/one.html)")
    assert 'src="gallery/one.html"' in shown


def test_the_page_of_the_site_has_three_pictures() -> None:
    assert gallery.shown((gallery.ROOT / gallery.PAGE).read_text()).count("<iframe") == 3


def test_files_are_made(tmp_path: Path) -> None:
    gallery.make(PAGE, tmp_path / "made")
    assert (tmp_path / "made" / "one.html").read_text() == "<p>1</p>"


def test_a_program_that_fails_or_shows_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)the programs of docs/gallery.md fail.*ZeroDivisionError"):
        gallery.make(PAGE.replace('Path("gallery").mkdir()', "1 / 0"), tmp_path)
    with pytest.raises(FileNotFoundError):
        gallery.make(PAGE.replace('write_text("<p>1</p>")', "name"), tmp_path)
    with pytest.raises(ValueError, match="writes no picture"):
        gallery.shown("```python\nx = 1\n```\n")


def test_changes_are_those_of_the_package() -> None:
    text = "# Log\n\n## 2.0\n\nWords.\n\n- **estimator-a**, **estimator-b**: both.\n"
    text += "- The kind of\n  estimator-c: one. Not estimator-a.\n"
    text += "\n## 1.0\n\n- **estimator-a-x**: another.\n- **estimator-a**: first.\n"
    assert changes.section(text, "estimator-a", "#") == (
        "# 2.0\n\n- **estimator-a**, **estimator-b**: both.\n\n# 1.0\n\n- **estimator-a**: first.\n"
    )
    assert changes.changes(text, "estimator-c") == {"2.0": {"": ["The kind of estimator-c: one. Not estimator-a."]}}
    assert changes.changes(text, "estimator-d") == {}


def test_changes_keep_their_sections_and_belong_to_the_packages_of_their_heading() -> None:
    text = "## 1.0\n\n### Added\n\n- **estimator-b**: [page](docs/b.md), [site](https://b.org).\n\n### Fixed\n\n"
    text += "#### Two (estimator-a, estimator-b)\n\n- For\n  both.\n- **estimator-a**: of b's reader.\n\n"
    text += "#### Other (estimator-c)\n\n- Third.\n\n### Changed\n\n- Nobody's.\n"
    assert changes.section(text, "estimator-b", "#") == (
        f"# 1.0\n\n## Added\n\n- **estimator-b**: [page]({TREE}docs/b.md), [site](https://b.org).\n\n"
        "## Fixed\n\n- For both.\n"
    )
    assert changes.changes(text, "estimator-a") == {"1.0": {"Fixed": ["For both.", "**estimator-a**: of b's reader."]}}
    assert changes.changes(text, "estimator-c") == {"1.0": {"Fixed": ["Third."]}}


def test_versions_are_listed_for_the_selector(tmp_path: Path) -> None:
    write_list(tmp_path, ["2", "1"])
    rows = json.loads((tmp_path / "versions.json").read_text())
    assert [(row["version"], row["aliases"]) for row in rows] == [("2", ["latest"]), ("1", [])]
    assert 'url=2/"' in (tmp_path / "index.html").read_text()
