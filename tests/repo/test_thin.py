"""Tests that the core stays thin: lines by room, files that a training enters, `Any`, and names of house packages.

A budget is the size of the core at the time it was set, rounded up slightly. A commit that needs more raises it and
states why. A commit that needs less lowers it.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

import pytest

from tests.repo.counting import Count, count_rooms, count_source, total

ROOT = Path(__file__).parents[2]
CORE = ROOT / "estimator_core"

#: The code lines by room. Modules directly in the package count together.
BUDGETS = {
    "_backends": 603,  # meshes that follow the hardware, names of axes, results of a predictor, failing ones
    "_builtin_hooks": 544,  # a file for each hook, summaries of evaluations, intervals and huge numbers told by name
    "_checkpoint": 2588,  # the catalog, audits, incremental saves, others' checkpoints, URLs, full quotas, few reads
    "_cli": 677,  # options of all commands anywhere, who takes them, errors of one line, URLs, pipes, long paths
    "_cluster": 401,  # every environment refused by name, who has ended or stopped predictions, broken connections
    "_export": 541,  # words of host transforms, formats that take one export, URLs, complex outputs, wrong shapes told
    "_inputs": 1660,  # global batches, the contract with the data, byte order, masks, exact columns, wide numbers
    "_journal": 799,  # damage, moved parts and what to do, a store that never answers, ends of calls, few snapshots
    "_loop": 4202,  # results of components, saves, killed ends, misfits, hyperparameters, compared programs, debug mode
    "_metrics": 458,  # totals that are summed and merged side by side, and traced once; which way a metric is good
    "_model": 1259,  # programs that Estimators, variables and tables share, two adapters of a module, failing ones
    "_packs": 608,
    "_plugins": 1761,  # contracts of what is made, identity by distribution, code named and locked, origins
    "_step": 1510,  # text labels, any ids, programs, joined columns, tables in forms, notes, optimizers by row
    "_storage": 394,  # file:// in all its forms, files at URLs, answers of storages of plugins
    "_summaries": 330,  # the lock of an event file, and a directory that is removed between two uses
    "flat": 2968,  # arguments of methods and exporters, series, trace states, dead calls, counts, evaluators, places
}

#: The modules that every author of a model, a hook or a plugin must know.
RING = (
    "modes",
    "specs",
    "errors",
    "config",
    "hooks",
    "heads",
    "hookspecs",
    "coordinator",
    "_backends/contract",
    "_export/contract",
    "_inputs/contract",
    "_metrics/base",
    "_model/adapter",
    "_model/initial_values",
    "_plugins/contract",
    "_loop/train",
    "_loop/evaluate",
    "_loop/predict",
)
RING_LINES = 1500
PAGE_STATEMENTS = 30
#: The occurrences of `Any` per thousand code lines.
ANY_DENSITY = 45.0
#: The number of files of the core that the smallest training enters.
ENTERED = 130
#: The smallest median of lines per file. A concept split into parts of 50 lines costs its reader a file for each part.
MEDIAN = 120
#: The files that map features to the packages of this repository.
MAY_NAME_PACKAGES = ("_moved.py", "_plugins/known.json")


def by_room(rooms: Mapping[str, Count]) -> dict[str, int]:
    """Returns the code lines by room, with all flat modules together."""
    flat = total(one for name, one in rooms.items() if name.endswith(".py"))
    return {"flat": flat.lines} | {name: one.lines for name, one in rooms.items() if not name.endswith(".py")}


def over_budget(lines: Mapping[str, int], budgets: Mapping[str, int]) -> list[str]:
    """Returns a line for each room that is too large or has no budget."""
    return [
        f"{room} has {count} code lines; its budget is {budgets.get(room, 0)}"
        for room, count in sorted(lines.items())
        if count > budgets.get(room, 0)
    ]


def house_packages() -> set[str]:
    """Returns the import names of the plugins of this repository."""
    return {path.name for path in ROOT.glob("plugins/*/src/*") if path.is_dir()}


def named_packages(source: str, packages: Iterable[str]) -> list[str]:
    """Returns the names of packages in the imports and strings of a module, without docstrings."""
    tree = ast.parse(source)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    words: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            words += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            words.append(node.module or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            words += re.findall(r"[\w.]+", node.value.replace("-", "_"))
    return sorted({word.partition(".")[0] for word in words} & set(packages))


def statements(source: str) -> int:
    """Returns the number of statements of a module, including nested ones, imports and docstrings."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(source)))


def test_no_room_is_over_its_budget() -> None:
    assert over_budget(by_room(count_rooms(CORE)), BUDGETS) == []


def test_a_room_over_its_budget_is_named() -> None:
    assert over_budget({"_step": 11, "attic": 1, "_cli": 5}, {"_step": 10, "_cli": 5}) == [
        "_step has 11 code lines; its budget is 10",
        "attic has 1 code lines; its budget is 0",
    ]


def test_flat_modules_count_together() -> None:
    one = Count(lines=3, any_names=0)
    assert by_room({"a.py": one, "b.py": one, "_room": one}) == {"flat": 6, "_room": 3}


def test_the_contracts_are_few() -> None:
    lines = {name: count_source((CORE / f"{name}.py").read_text()).lines for name in RING}
    assert sum(lines.values()) <= RING_LINES, lines


@pytest.mark.parametrize("page", ["train", "evaluate", "predict"])
def test_a_loop_fits_on_a_page(page: str) -> None:
    assert statements((CORE / "_loop" / f"{page}.py").read_text()) <= PAGE_STATEMENTS


def test_statements_are_counted_wherever_they_stand() -> None:
    assert statements('"""Text."""\nimport os\ndef f():\n    if os:\n        return 1\n') == 5


def test_any_is_rare() -> None:
    assert total(count_rooms(CORE).values()).any_density <= ANY_DENSITY


def test_the_core_names_no_house_package() -> None:
    packages = house_packages()
    assert "estimator_heads" in packages
    named = {
        str(path.relative_to(CORE)): named_packages(path.read_text(), packages)
        for path in CORE.rglob("*.py")
        if str(path.relative_to(CORE)) not in MAY_NAME_PACKAGES
    }
    assert {path: names for path, names in named.items() if names} == {}
    assert all((CORE / path).exists() for path in MAY_NAME_PACKAGES)
    tables = ["_homes.json", "_plugins/known.json"]  # names of tf.estimator; components of known packages
    assert sorted(str(path.relative_to(CORE)) for path in CORE.rglob("*.json")) == tables
    assert json.loads((CORE / "_plugins" / "known.json").read_text())


@pytest.mark.parametrize(
    "source",
    [
        "import estimator_heads.plugin\n",
        "def f():\n    from estimator_heads import Head\n",
        "NAMES = ('estimator_heads',)\n",
        "TARGET = 'estimator_heads.plugin:Head'\n",
        "def f():\n    raise ValueError('pip install estimator-heads')\n",
        "TEXT = f'{1}: install `estimator-heads`.'\n",
    ],
)
def test_a_house_package_is_found(source: str) -> None:
    assert named_packages(source, {"estimator_heads", "estimator_hooks"}) == ["estimator_heads"]


def test_a_docstring_may_name_a_package() -> None:
    assert named_packages('"""See estimator_heads."""\n\ndef estimator_heads(): ...\n', {"estimator_heads"}) == []


def entered(*statement: str) -> list[str]:
    command = [sys.executable, "-m", "tests.repo.entered", *statement]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_training_enters_few_files() -> None:
    files = entered()
    assert "_loop/train.py" in files
    assert len(files) <= ENTERED, files


def test_a_file_holds_a_concept() -> None:
    assert median(len(path.read_text().splitlines()) for path in CORE.rglob("*.py")) >= MEDIAN


def test_a_file_counts_when_any_of_its_code_runs() -> None:
    files = entered("import estimator_core.lowering")
    assert "lowering.py" in files
    assert "_loop/train.py" not in files
