"""Tests that every workload can be measured and drawn: it writes JSON, is part of the suite, and plots mark its
targets.
"""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

SVG = "{http://www.w3.org/2000/svg}"
# Writes the results of a workload: three rows, two of them with targets.
WRITES_RESULTS = """
import sys
from pathlib import Path
from _report import report, write
from _side_by_side import compared

measured = {"ours & co": [1.0, 1.1, 0.9], "loop": [0.97, 1.05, 0.93], "ten times": [4e6, 4.1e6], "once": [4e6, 4e6]}
faster = [compared(measured, "ours & co", "loop"), compared(measured, "loop", "ours & co")]
memory = compared(measured, "ten times", "once", smaller_is_better=True)
write(
    Path(sys.argv[1]),
    report("A <workload>", faster, steps=10, rows=100, targets={("ours & co", "loop"): 0.95}, notes=["a note"]),
    report("Memory", [memory], steps=1, unit=("MB", 1e-6), targets={("ten times", "once"): 1.05, ("absent", "x"): 1.0}),
)
"""


@pytest.fixture(scope="module")
def benchmarks(root: Path) -> Path:
    return root / "benchmarks"


@pytest.fixture(scope="module")
def results(benchmarks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of one workload."""
    folder = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-c", WRITES_RESULTS, str(folder / "one.json")]
    # An isolated interpreter (PYTHONSAFEPATH) does not search the working directory for modules.
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(benchmarks)}, check=True)
    return folder


def draw(benchmarks: Path, results: Path, output: Path) -> dict[str, str]:
    """Returns the files that `_plot.py` writes, by name."""
    subprocess.run([sys.executable, str(benchmarks / "_plot.py"), str(output), str(results)], check=True)
    return {path.name: path.read_text(encoding="utf-8") for path in [*output.iterdir(), output.with_suffix(".svg")]}


def test_results_hold_ratios_and_targets(results: Path) -> None:
    content: dict[str, Any] = json.loads((results / "one.json").read_text())
    faster, memory = content["tables"]
    assert [line["target"] for line in faster["results"]] == [0.95, None]
    first, (grown,) = faster["results"][0], memory["results"]
    assert first["ratio"] == pytest.approx(0.97)
    assert first["low"] <= first["ratio"] <= first["high"]
    assert grown["ratio"] == pytest.approx(1.0125)
    assert grown["smaller_is_better"]
    assert faster["rows_per_second"]["ours & co"] == pytest.approx(100)
    assert {"cores", "python", "jax"} <= content["environment"].keys()


def test_a_plot_for_each_workload_and_one_of_all_targets(benchmarks: Path, results: Path, tmp_path: Path) -> None:
    drawn = draw(benchmarks, results, tmp_path / "plots")
    assert drawn.keys() == {"one.svg", "plots.svg"}
    for name, rows in {"one.svg": 3, "plots.svg": 2}.items():
        tree = ElementTree.fromstring(drawn[name])
        assert len([path for path in tree.iter(f"{SVG}path") if path.get("class") == "target"]) == 2
        texts = [element.text or "" for element in tree.iter(f"{SVG}text")]
        assert sum(" / " in text for text in texts) == rows
        assert any("\u2265 0.95" in text for text in texts)
        assert any("\u2264 1.05" in text for text in texts)


def test_the_same_results_give_the_same_plot(benchmarks: Path, results: Path, tmp_path: Path) -> None:
    first, second = (draw(benchmarks, results, tmp_path / name / "plots") for name in ("first", "second"))
    assert first == second


def test_every_workload_writes_json_and_stands_in_the_suite(benchmarks: Path) -> None:
    suite = (benchmarks / "_suite.py").read_text()
    shared = (benchmarks / "_long_training.py").read_text()
    # One needs a second source tree, and one does not measure time.
    others = {benchmarks / "two_trees.py", benchmarks / "tabular_accuracy.py"}
    for path in set(benchmarks.glob("[!_]*.py")) - others:
        text = path.read_text()
        options = shared if "from _long_training import" in text and "report_steps" in text else text
        assert '"--json"' in options, path.name
        assert f'"{path.name}"' in suite, path.name


def listed(benchmarks: Path, *options: str) -> list[str]:
    """Returns the names of the workloads that the suite would run."""
    command = [sys.executable, str(benchmarks / "_suite.py"), *options, "--list"]
    done = subprocess.run(command, env=beside(benchmarks), check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


def beside(benchmarks: Path) -> dict[str, str]:
    """Returns the environment in which an isolated interpreter (PYTHONSAFEPATH) finds the modules in the folder of a
    script.
    """
    return {**os.environ, "PYTHONPATH": str(benchmarks)}


def test_the_parts_of_the_suite_have_every_workload_once_and_the_summary_some(benchmarks: Path) -> None:
    whole = listed(benchmarks)
    assert len(whole) == len(set(whole))
    assert set(whole) == {line.split('"')[1] for line in suite_lines(benchmarks)}
    summary = listed(benchmarks, "--summary")
    assert set(summary) < set(whole)
    assert {"mlp_steps", "train_and_evaluate", "save", "start_up", "inputs"} <= set(summary)
    assert listed(benchmarks, "--part", "text") == ["bert_tiny", "bert_mini", "bert_mini_full"]


def suite_lines(benchmarks: Path) -> list[str]:
    """Returns the lines of the table of workloads."""
    table = (benchmarks / "_suite.py").read_text().partition("SUITE: ")[2].partition("\n}\n")[0]
    return [line for line in table.splitlines() if line.startswith('    "')]


def test_the_page_shows_each_workload_and_counts_its_targets(benchmarks: Path, results: Path, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    command = [sys.executable, str(benchmarks / "_page.py"), str(output), str(results)]
    subprocess.run(command, env=beside(benchmarks), check=True)
    shown = output.read_text(encoding="utf-8")
    (row,) = [line for line in shown.splitlines() if 'href="#one"' in line]
    # The whole intervals meet both targets, and one line has no target.
    assert [cell.partition("<")[0] for cell in row.split("<td>")[2:5]] == ["2", "", ""]
    assert shown.count("<svg") == 1
    assert "A &lt;workload&gt;" in shown


WORKS_BESIDE_OTHERS = """
import json, os, sys
from _load import Load

load = Load(spinning=2, memory=1)
with load.running():
    entries = [entry.path + "/status" for entry in os.scandir("/proc") if entry.name.isdigit()]
    mine = 0
    for entry in entries:
        try:
            mine += f"PPid:\\t{os.getpid()}\\n" in open(entry).read()
        except OSError:
            pass
print(json.dumps([mine, load.of("a loop"), Load().of("a loop")]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts processes in /proc")
def test_a_load_runs_its_processes_and_ends_them(benchmarks: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", WORKS_BESIDE_OTHERS],
        env={**os.environ, "PYTHONPATH": str(benchmarks)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout
    assert json.loads(printed) == [3, "a loop, 2 spinning, 1 moving memory", "a loop"]
