"""Tests of the page, the command, and the page in a browser."""

import shutil
import subprocess
from pathlib import Path

import acme_section
import pytest
from results import results

from estimator_core.cli import main
from estimator_core.plugins import Plugins
from estimator_core.summaries import append_eval_metrics
from estimator_report import read_source, write_report
from estimator_report.section_suite import unclosed

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture
def model_dir(tmp_path):
    for step, metrics in results().items():
        append_eval_metrics(tmp_path / "eval_test", step, metrics, None)
    append_eval_metrics(tmp_path / "eval", 0, {"loss": 0.25}, None)
    (tmp_path / "eval_test" / "metrics.jsonl").touch()
    return tmp_path


def test_the_command_writes_the_newest_evaluation(model_dir, capsys):
    assert main(["report", str(model_dir)]) == 0
    assert "3 checkpoints of the evaluation test" in capsys.readouterr().out
    page = (model_dir / "report.html").read_text()
    assert unclosed(page) == []
    headings = [part.split("</h2>")[0] for part in page.split("<h2>")[1:]]
    assert headings == ["Checkpoints", "Slices", "Curves"]
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_another_evaluation_and_file(model_dir, capsys):
    assert main(["report", str(model_dir), "--name", "", "--output", str(model_dir / "there" / "a.html")]) == 0
    page = (model_dir / "there" / "a.html").read_text()
    assert page.count("<h2>") == 1
    code = main(["report", str(model_dir), "--name", "other"])
    assert code == 2
    assert "no evaluation 'other'. It has ['', 'test']" in capsys.readouterr().err


def test_a_directory_of_several_runs_is_named(tmp_path, capsys):
    for number in ("1", "0"):
        run = tmp_path / "trials" / number
        run.mkdir(parents=True)
        (run / "run.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    told = f"{tmp_path} is not a model_dir. It contains 2 runs, such as {tmp_path / 'trials' / '0'}. Give one of them."
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("/proc/x.html", "No such file or directory"),
        ("folder.html", "Is a directory"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused(model_dir, capsys, monkeypatch, place, why):
    monkeypatch.chdir(model_dir)
    Path("file").write_text("")
    Path("folder.html").mkdir()
    assert main(["report", str(model_dir), "--output", place]) == 2
    assert f"error: {place} cannot be written: {why}.\n" in capsys.readouterr().err
    assert not list(Path().glob("**/.draft-*"))


@pytest.mark.parametrize("place", ["file/x.html", "file/folder/x.html"])
def test_a_page_below_a_file_is_refused_at_once(model_dir, capsys, monkeypatch, place):
    monkeypatch.chdir(model_dir)
    Path("file").write_text("")
    with pytest.raises(SystemExit, match="2"):
        main(["report", str(model_dir), "--output", place])
    assert f"{place} cannot be written: file is a file, not a directory" in capsys.readouterr().err


def test_a_directory_without_results_is_told_what_to_do(tmp_path, capsys):
    code = main(["report", str(tmp_path)])
    assert code == 2
    assert "estimator evaluate --model-dir" in capsys.readouterr().err


def test_a_plugin_adds_a_section(model_dir):
    path = write_report(read_source(model_dir), model_dir / "r.html", plugins=Plugins(extra=[acme_section]))
    page = path.read_text()
    assert page.index("<h2>Checkpoints</h2>") < page.index("<p>3 of them</p>") < page.index("<h2>Slices</h2>")


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_browser_shows_it(model_dir):
    page = write_report(read_source(model_dir, "test"), model_dir / "report.html")
    picture = model_dir / "page.png"
    common = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"),
        f"--user-data-dir={model_dir / 'profile'}",
    ]
    dom = subprocess.run(
        [*common, "--enable-logging=stderr", "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert dom.returncode == 0, dom.stderr
    assert dom.stdout.count("<svg") == page.read_text().count("<svg") > 8
    assert "CONSOLE" not in dom.stderr  # a refused style or picture would be reported there
    subprocess.run(
        [*common, "--window-size=1100,1400", f"--screenshot={picture}", page.as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000  # an empty page of this size takes less than 10,000 bytes
