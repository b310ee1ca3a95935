"""Tests of the programs of sessions: an unknown argument, or a core that cannot be installed, is an error and never
ignored.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.site import versions, walks

ROOT = Path(__file__).parents[2]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a program with arguments that it refuses, and returns the last line that it prints."""

    def last_line(program: ModuleType, *words: str) -> str:
        monkeypatch.setattr("sys.argv", ["program", *words])
        monkeypatch.setattr(program, "subprocess", None)  # nothing is started
        with pytest.raises(SystemExit) as ended:
            program.main()
        assert ended.value.code == 2
        return capsys.readouterr().err.splitlines()[-1]

    return last_line


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{Path(path).stem}_script", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_core_must_install_and_a_peer_need_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    footprint = script(".ci/footprint.py")

    def row(peer: Any, folder: Path) -> str:
        if peer.distribution in broken:
            raise subprocess.CalledProcessError(1, "pip", stderr="WARNING\nERROR: no such wheel\n")
        return f"| {peer.title} | 1 |"

    monkeypatch.setattr(footprint, "row", row)
    monkeypatch.setattr("sys.argv", ["footprint", "core.whl"])
    broken = ["pluggy"]
    footprint.main()
    assert "skipped: pluggy cannot be installed here: ERROR: no such wheel" in capsys.readouterr().out
    broken = ["estimator-core"]
    with pytest.raises(SystemExit, match=r"^estimator-core cannot be installed: ERROR: no such wheel$"):
        footprint.main()


def test_a_kind_that_nobody_writes(monkeypatch: pytest.MonkeyPatch, refused: Any) -> None:
    monkeypatch.syspath_prepend(ROOT / ".ci")
    author = script(".ci/author.py")
    line = refused(author, "--kind=hook:", "--kind=head:estimator_heads", "--only", "hook", "hok")
    assert line == "program: error: --only: there is no kind hok; kinds are hook, head"
    done: list[str] = []
    monkeypatch.setattr(author, "row", lambda kind, *_: done.append(kind))
    monkeypatch.setattr("sys.argv", ["author", "--kind=hook:", "--kind=head:", "--only", "hook"])
    author.main()
    assert done == ["hook"]


def test_a_walk_that_is_not_there(tmp_path: Path, refused: Any) -> None:
    line = refused(walks, str(tmp_path / "new"), "--only", "no such walk")
    assert line.startswith("program: error: --only: no walk has 'no such walk' in its name; they are installation, own")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("word", ["0.2", "0.2=", "=v0.2"])
def test_a_version_without_a_name_or_a_commit(tmp_path: Path, refused: Any, word: str) -> None:
    line = refused(versions, str(tmp_path / "new"), "0.1=v0.1.0", word)
    assert line == f"program: error: {word!r} is no NAME=COMMIT, such as 0.1=v0.1.0, or dev=. for the working tree"


class Page:
    """Imitates the page of a browser on a site whose selector works."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.url, self.clicked = names, "", []

    def goto(self, url: str, **_: Any) -> None:
        self.url = url if "tutorial" in url else f"{url}{self.names[0]}/"

    def inner_text(self, _: str) -> str:
        return self.url.split("/")[-3]

    def locator(self, _: str) -> Page:
        return self

    def all_text_contents(self) -> list[str]:
        return self.names

    def click(self, selector: str) -> None:
        self.clicked.append(selector.split("'")[1])

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@pytest.mark.parametrize(("names", "clicked"), [(["0.1"], []), (["0.2", "0.1"], ["0.1", "0.2"])])
def test_a_site_of_one_version_has_no_other_to_choose(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: list[str], clicked: list[str]
) -> None:
    for module, its in (
        ("playwright", ()),
        ("playwright.sync_api", ("Browser", "sync_playwright")),
        ("docs.site.browse", ("BROWSERS", "served")),
    ):
        made = ModuleType(module)
        vars(made).update(dict.fromkeys(its, nullcontext))
        monkeypatch.setitem(sys.modules, module, made)
    page, browser = Page(names), ModuleType("browser")
    vars(browser)["new_page"] = lambda **_: page
    assert script("docs/site/browse_versions.py").check(browser, "http://site/", names, tmp_path) == []
    assert page.clicked == clicked
