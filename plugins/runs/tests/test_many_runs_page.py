"""Tests of the page of many runs in a browser."""

import math
import re
import shutil
import subprocess

import pytest
from test_runs import leave

from estimator_core.cli import main

pytest.importorskip("estimator_report")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.slow
def test_a_browser_shows_fifty_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(50):
        seed, rate = divmod(number, 5)
        losses = [(1 + rate) / math.sqrt(step) + 0.01 * seed for step in range(1, 60)]
        leave(f"runs/{number:02d}", losses, seed=seed, rate=10.0**-rate)
    assert main(["runs", "compare", "runs"]) == 0
    assert main(["runs", "plot", "runs", "--output", "runs.html"]) == 0
    page = tmp_path / "runs.html"
    common = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"),
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    dom = subprocess.run(
        [*common, "--enable-logging=stderr", "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=300
    )
    assert dom.returncode == 0, dom.stderr
    assert "CONSOLE" not in dom.stderr  # a refused style or script would be reported there
    assert len(re.findall("<tr>", dom.stdout)) == 51 + 5  # the runs, the best configuration and four others
    assert dom.stdout.count("<polyline") == 12
    assert "The best 12 of 50 runs are drawn." in dom.stdout
    picture = tmp_path / "runs.png"
    subprocess.run(
        [*common, "--window-size=1100,2000", f"--screenshot={picture}", page.as_uri()],
        capture_output=True,
        timeout=300,
        check=True,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
