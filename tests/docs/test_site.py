"""Tests that the site names every public name, its links work, and its catalogue of errors matches the code."""

from __future__ import annotations

import ast
import importlib
import inspect
import posixpath
import re
from pathlib import Path

import pytest

import estimator_report
from docs.site import api, links, names, packages, places, running, stage
from estimator_core import errors

ROOT = Path(__file__).parents[2]
ROW = re.compile(r'^\| <span id="name-([^"]+)"></span>\[`\w+`\]\(([^)]*)\) \| (.*) \|$', re.MULTILINE)
FRAGMENT = re.compile(r"^\| `([^`]+)` \|", flags=re.MULTILINE)


def every_name() -> list[str]:
    modules = dict(names.core_modules())
    for package in names.plugin_packages():
        modules |= names.package_modules(package)
    return [f"{module}.{name}" for module, listed in modules.items() for name in listed]


@pytest.fixture(scope="module")
def reference() -> str:
    return "\n".join(api.pages().values())


def test_every_public_name_is_on_the_site(reference: str) -> None:
    listed = every_name()
    assert len(listed) > 600
    assert [name for name in listed if f'<span id="name-{name}"></span>' not in reference] == []


def test_every_public_name_has_a_contract_and_a_place(reference: str) -> None:
    assert len(ROW.findall(reference)) == len(every_name())
    assert without_contract(reference) == []
    places = set(re.findall(r"^## \w+ \{ #([\w.]+) \}$", reference, re.MULTILINE))
    links = [(name, link) for name, link, _ in ROW.findall(reference)]
    assert [name for name, link in links if "#" in link and link.partition("#")[2] not in places] == []


def without_contract(page: str) -> list[str]:
    return [name for name, _, contract in ROW.findall(page) if not contract]


@pytest.mark.parametrize("bases", [(), (estimator_report.ReportSource,)], ids=["alone", "of a documented class"])
def test_a_public_name_without_words_of_its_own_is_noticed(
    bases: tuple[type, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = "estimator_report", f"Undocumented{len(bases)}"
    monkeypatch.setattr(estimator_report, name, type(name, bases, {"__module__": module}), raising=False)
    modules = {module: [*names.exported(module), name]}
    found = api.page(module, modules[module], names.homes(modules))
    assert without_contract(found) == [f"{module}.{name}"]


def test_every_public_class_and_function_has_a_running_example() -> None:
    shown = api.examples()
    described = (names.describe(*path.rsplit(".", 1)) for path in every_name())
    written = {one.canonical: one.path for one in described if one.canonical}
    assert len(written) > 700
    assert [path for canonical, path in written.items() if canonical not in shown] == []


def test_a_name_without_an_example_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    module, name = "estimator_report", "Undocumented"
    monkeypatch.setattr(estimator_report, name, type(name, (), {"__module__": module}), raising=False)
    shown = running.examples({module: [name, "ReportSection"]})
    assert list(shown) == ["estimator_report.contract.ReportSection"]
    assert shown["estimator_report.contract.ReportSection"].link == "../report.md#a-section-of-your-own"


def test_the_headings_of_a_page_are_named_as_the_site_names_them() -> None:
    text = "# One `two`\n\n```text\n# no\n```\n\n## [Three](x.md)\n\n## Three\n"
    assert [heading for _, *heading in places.headings(text)] == [
        ["One `two`", "one-two"],
        ["Three", "three"],
        ["Three", "three_1"],
    ]


def test_a_name_without_documentation_is_noticed() -> None:
    assert names.describe("estimator_core._plugins.records", "_TABLE").summary == ""
    assert (
        names.describe("estimator_core.hookspecs", "PREFIX").summary
        == "The prefix of the names of all hook specifications."
    )


def test_every_plugin_has_a_page_with_its_components() -> None:
    pages = packages.pages()
    assert set(pages) == {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
    missing: list[str] = []
    for name, text in pages.items():
        plugin = importlib.import_module(f"estimator_{name}.plugin")
        for one in [*getattr(plugin, "estimator_components", tuple)(), *getattr(plugin, "estimator_commands", tuple)()]:
            missing += [f"{name}: {one.name}"] * (one.summary not in text.partition("## Declared by the package")[2])
    assert missing == []


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r'"([\w./-]+\.md)"', str(stage.configuration()["nav"]).replace("'", '"'))
    assert set(listed) == set(stage.texts())
    assert len(listed) == len(set(listed))


def test_every_page_for_users_has_a_chosen_place() -> None:
    guides = next(part["How-to guides"] for part in stage.configuration()["nav"] if "How-to guides" in part)
    assert [part for part in guides if isinstance(part, dict) and "More" in part] == []


def test_links_become_links_between_pages() -> None:
    text = stage.texts()["index.md"]
    assert "](tutorial.md)" in text
    assert "](packages/heads.md)" in text
    assert f"]({api.TREE}examples)" in text


def lost_places(texts: dict[str, str]) -> list[str]:
    """Returns links of pages to headings that do not exist, as `page: target`."""
    known_places = {page: {name for *_, name in places.headings(text)} for page, text in texts.items()}
    found: list[str] = []
    for page, text in texts.items():
        for target in re.findall(r"\]\(([^)\s:]*#[^)\s]+)\)", text):
            file, _, place = target.partition("#")
            known = known_places.get(
                posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page
            )
            if known is not None and place not in known:
                found.append(f"{page}: {target}")
    return found


def test_links_lead_to_headings_that_exist() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("plugins/*/README.md"),
    ]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in pages}
    assert lost_places(texts) == []
    texts["docs/faq.md"] += "[gone](training.md#what-is-compilde) [here](#running)"
    assert lost_places(texts) == ["docs/faq.md: training.md#what-is-compilde"]


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ('<a href="../gone/">', "leads nowhere"),
        ('<a href="../b/#lost">', "names no place on the page"),
        ('<script src="https://example.test/a.js"></script>', "loads https://example.test/a.js"),
    ],
)
def test_a_bad_link_is_found(link: str, fault: str) -> None:
    site = {"a/index.html": links.read(link), "b/index.html": links.read('<p id="here">')}
    (found,) = links.faults(site, frozenset(site))
    assert fault in found


def test_good_links_pass() -> None:
    page = links.read('<a href="../b/#here"><a href="https://example.test/"><a href="#top" id="top">')
    site = {"a/index.html": page, "b/index.html": links.read('<p id="here">')}
    assert links.faults(site, frozenset(site)) == []


def every_error() -> set[str]:
    """Returns the names of all public errors of the core and its plugins."""
    found = (names.value_of(*path.rsplit(".", 1)) for path in every_name())
    return {one.__name__ for one in found if inspect.isclass(one) and issubclass(one, errors.EstimatorError)}


def test_the_catalogue_has_every_error_class() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    assert len(every_error()) > 30
    assert [name for name in every_error() if name not in page] == []


def test_the_catalogue_quotes_messages_that_exist() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    quoted = [text for text in FRAGMENT.findall(page) if text.rpartition(".")[2] not in every_error()]
    assert len(quoted) > 20
    written = _texts()
    assert sorted({text for text in quoted if text not in written}) == []


def _texts() -> str:
    """Returns every string of the packages."""
    found: list[str] = []
    for path in [*ROOT.glob("estimator_core/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)
