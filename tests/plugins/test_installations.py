"""Tests of all kinds of installation: from a zip, a namespace or an editable source, twice, or for another core."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from estimator_core.errors import PluginError
from tests.plugins.fake_site import Site

HOOK = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="hook", name="{name}", target="{target}", summary="A fixture.")]
"""
LISTED = """
import json
import multiprocessing
import sys

from estimator_core.plugins import Plugins


def found(queue):
    queue.put([plugins_of(), sorted(name for name in sys.modules if name == "jax")])


def plugins_of():
    records = Plugins(only=["acme-one", "acme-two"]).records()
    ours = [one for one in records if one.distribution and one.distribution.startswith("acme-")]
    return [[one.distribution, one.version, one.status, one.error] for one in ours]


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=found, args=(queue,))
    child.start()
    below, heavy = queue.get(timeout=100)
    child.join()
    print(json.dumps([plugins_of(), below, heavy]))
"""


def listed(site: Site, tmp_path: Path, path: Path | None = None) -> list[list[str]]:
    """Returns the plugins that a process and its spawned child find."""
    (tmp_path / "listed.py").write_text(LISTED)
    environ = {"PYTHONPATH": os.pathsep.join([str(path or site.path), *filter(None, sys.path)])}
    done = site.python(str(tmp_path / "listed.py"), environ=environ)
    assert done.returncode == 0, done.stderr
    here, below, heavy = json.loads(done.stdout)
    assert here == below, "a spawned process finds other plugins"
    assert heavy == []
    return here


def test_in_a_zip_file(site: Site, tmp_path: Path) -> None:
    site.add("acme-one", HOOK.format(name="one", target="json:loads"))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in site.path.rglob("*"):
            archive.write(path, path.relative_to(site.path).as_posix())
    shutil.rmtree(site.path)
    assert listed(site, tmp_path, tmp_path / "all.zip") == [["acme-one", "1.0", "loaded", ""]]


def test_two_packages_of_one_namespace(site: Site, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (folder := site.path / "shared_acme" / name).mkdir(parents=True)
        source = HOOK.format(name=name, target=f"shared_acme.{name}.hook:Own")
        (folder / "plugin.py").write_text("ESTIMATOR_PLUGIN_API = (1, 0)\n" + source)
        (folder / "hook.py").write_text("class Own:\n    pass\n")
        (metadata := site.path / f"acme_{name}-1.0.dist-info").mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{name} = shared_acme.{name}.plugin\n")
    assert [row[:3] for row in listed(site, tmp_path)] == [["acme-one", "1.0", "loaded"], ["acme-two", "1.0", "loaded"]]
    assert site.plugins().get("hook", "two").__module__ == "shared_acme.two.hook"


def test_an_editable_source(site: Site, tmp_path: Path) -> None:
    source = Site(tmp_path / "source")
    source.path.mkdir()
    source.add("acme-one", HOOK.format(name="one", target="json:loads"))
    (metadata,) = source.path.glob("*.dist-info")
    shutil.move(metadata, site.path / metadata.name)
    origin = {"url": (tmp_path / "source").as_uri(), "dir_info": {"editable": True}}
    (site.path / metadata.name / "direct_url.json").write_text(json.dumps(origin))
    both = Path(f"{site.path}{os.pathsep}{source.path}")
    assert listed(site, tmp_path, both) == [["acme-one", "1.0", "loaded", ""]]


def test_of_two_versions_the_one_that_is_imported_counts_and_only_once(site: Site, tmp_path: Path) -> None:
    site.add("acme-one", HOOK.format(name="one", target="json:loads"), version="2.0")
    older = Site(tmp_path / "older")
    older.path.mkdir()
    older.add("acme-one", "raise AssertionError('the hidden version was imported')", version="1.0")
    both = Path(f"{site.path}{os.pathsep}{older.path}")
    assert listed(site, tmp_path, both) == [["acme-one", "2.0", "loaded", ""]]


@pytest.mark.parametrize(
    ("api", "words"),
    [
        ("ESTIMATOR_PLUGIN_API = (2, 0)\n", ("2.0", "contract")),
        ("ESTIMATOR_PLUGIN_API = (1, 99)\n", ("1.99", "contract")),
    ],
)
def test_a_plugin_for_another_core_is_left_out_in_the_words_of_its_author(
    site: Site, api: str, words: tuple[str, ...]
) -> None:
    site.add("acme-one", HOOK.format(name="one", target="json:loads"), api=api)
    done = site.run("plugins", environ={"ESTIMATOR_PLUGINS": "acme-one"})
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.strip().startswith("failed:")]
    assert all(word in line for word in words), line


def test_one_that_imports_what_this_core_lacks_says_which_core_it_is_for(site: Site) -> None:
    old = "estimator-core<0.1,>=0.0.1"
    site.add("acme-one", "from estimator_core.hooks import GoneHook\n", requires=old)
    component = HOOK.format(name="two", target="acme_two.hook:Own")
    site.add("acme-two", component, requires=old, files={"hook.py": "from estimator_core.gone import Own\n"})
    site.add("acme-three", "import no_such_library\n", requires=old)
    plugins = site.plugins()
    errors = {one.distribution: one.error for one in plugins.records()}
    words = f"requires {old}; this is estimator-core {metadata.version('estimator-core')})"
    assert f"(acme-one {words}" in errors["acme-one"]
    assert "requires" not in errors["acme-three"]  # another version of the core would not help
    with pytest.raises(PluginError, match=re.escape(f"(acme-two {words}")):
        plugins.get("hook", "two")
