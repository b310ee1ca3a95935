"""Tests that the plugin guide describes every hook specification, and that the core calls each of them."""

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from estimator_core import hookspecs
from estimator_core._plugins.contract import HOOK_NAMES
from estimator_core.plugins import Plugins

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "plugins"
DECLARATIONS = (
    "estimator_components",
    "estimator_commands",
    "estimator_capabilities",
    "estimator_options",
    "estimator_kinds",
    "estimator_hookspecs",
)


def undocumented(name: str, function: object, pages: dict[str, str]) -> list[str]:
    """Returns what is missing in the documentation of a specification."""
    doc = inspect.getdoc(function) or ""
    arguments = list(inspect.signature(function).parameters)
    faults = [f"{page} does not name {name}" for page, text in pages.items() if not re.search(rf"\b{name}\b", text)]
    faults += [f"{name} has no example"] * ("Example:" not in doc)
    faults += [
        f"{name}: argument {one} is not described" for one in arguments if not re.search(rf"^    {one}: ", doc, re.M)
    ]
    return faults


def unused(name: str, sources: dict[Path, str]) -> list[str]:
    """Returns a fault if the core never calls a specification."""
    facade = name.removeprefix(hookspecs.PREFIX)
    if name in DECLARATIONS:
        called = [path for path, text in sources.items() if path.parent.name == "_plugins" and f'"{name}"' in text]
    else:
        call = re.compile(rf"plugins\.{facade}\(")
        called = [
            path
            for path, text in sources.items()
            if (path.parent.name == "_loop" or path.name == "_estimator_internals.py") and call.search(text)
        ]
    return [] if called else [f"nothing in the core calls {name}"]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: (DOCS / name).read_text() for name in ("timeline.md", "reference.md")}


@pytest.fixture(scope="module")
def sources() -> dict[Path, str]:
    return {path: path.read_text() for path in (ROOT / "estimator_core").rglob("*.py")}


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_every_specification_is_documented(name: str, pages: dict[str, str]) -> None:
    assert undocumented(name, getattr(hookspecs, name), pages) == []


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_every_specification_is_called_by_the_core(name: str, sources: dict[Path, str]) -> None:
    assert unused(name, sources) == []


def test_a_new_specification_is_noticed(pages: dict[str, str], sources: dict[Path, str]) -> None:
    def estimator_run_paused(run: object) -> None:
        """Observes that a run pauses."""

    assert undocumented("estimator_run_paused", estimator_run_paused, pages) == [
        "timeline.md does not name estimator_run_paused",
        "reference.md does not name estimator_run_paused",
        "estimator_run_paused has no example",
        "estimator_run_paused: argument run is not described",
    ]
    assert unused("estimator_run_paused", sources) == ["nothing in the core calls estimator_run_paused"]


def build_reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_reference", DOCS / "build_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lacking(name: str, contract: type, members: dict[str, tuple[str, str]]) -> list[str]:
    """Returns members without a description, and arguments that the description does not name."""
    found = [f"{name}.{member} is not described" for member, (_, text) in members.items() if not text]
    for member, (_, text) in members.items():
        value = vars(contract).get(member)
        given = list(inspect.signature(value).parameters)[1:] if inspect.isfunction(value) else []
        found += [f"{name}.{member}: {one} is not described" for one in given if not re.search(rf"\b{one}\b", text)]
    return found


def test_every_member_of_every_contract_is_described_with_its_arguments() -> None:
    module = build_reference()
    contracts = {where: module.object_of(where) for where in module.contracts()}
    assert {"estimator_core.hooks:Run", "estimator_core.heads:Head", "estimator_core.metrics:Metric"} <= set(contracts)
    classes = {where: one for where, one in contracts.items() if inspect.isclass(one)}
    assert [where for where, one in classes.items() if not module.members(one)] == []
    assert [fault for where, one in classes.items() for fault in lacking(where, one, module.members(one))] == []


def test_a_member_without_a_word_is_noticed() -> None:
    class Sampler:
        rows: int

        def sample(self, count: int, seed: int) -> list[int]:
            """Draws `count` rows."""

    assert lacking("Sampler", Sampler, build_reference().members(Sampler)) == [
        "Sampler.rows is not described",
        "Sampler.sample: seed is not described",
    ]


def test_the_reference_is_that_of_the_code() -> None:
    module = build_reference()
    assert (DOCS / "reference.md").read_text() == module.reference(), "run python docs/plugins/build_reference.py"


def test_the_run_level_functions_of_the_tutorial_make_a_plugin_of_the_present_contract() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "tutorial.md").read_text(), re.S)
    (code,) = [one for one in blocks if "def estimator_options" in one]
    module = ModuleType("acme_patience_plugin")
    vars(module)["ESTIMATOR_PLUGIN_API"] = hookspecs.PLUGIN_API  # as `estimator new-plugin` writes it
    exec(code, vars(module))
    record = Plugins(autoload=False, extra=[module]).records()[-1]
    assert (record.status, record.error) == ("loaded", "")
    assert record.capabilities == ("adds_hooks", "reads_metrics")
