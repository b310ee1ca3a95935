"""`estimator new-plugin --kind` for a kind that a plugin defines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_testing.cli.scaffold import write_package
from tests.plugins.fake_site import API, Site

API_1_1 = API.replace("(1, 0)", "(1, 1)")
DEFINES = """
from estimator_core.plugins import Kind

def estimator_kinds():
    return [
        Kind(
            name="sampler",
            title="samplers",
            contract="acme_samplers.samplers:Sampler",
            target="a class whose call gives a Sampler",
            suite="acme_samplers.suite:SamplerSuite",
            scaffold="acme_samplers:templates",
        )
    ]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    site = Site(folder)
    yield site
    site.forget()


def test_a_package_for_its_kind_is_written(site, tmp_path, monkeypatch):
    site.add("acme-samplers", DEFINES, api=API_1_1)
    folder = site.path / "acme_samplers" / "templates"
    folder.mkdir()
    (folder / "component.py.tmpl").write_text("class $target:\n    def sample(self, count):\n        return []\n")
    (folder / "test_component.py.tmpl").write_text("from acme_samplers.suite import SamplerSuite\n")
    (folder / "usage.md.tmpl").write_text('`Plugins().get("sampler", "$component")`\n')
    monkeypatch.setenv("ESTIMATOR_PLUGINS", "acme-samplers")
    write_package("acme-none", "sampler", tmp_path)
    written = tmp_path / "acme-none"
    assert 'target="acme_none.sampler:AcmeNoneSampler"' in (written / "src/acme_none/plugin.py").read_text()
    assert "class AcmeNoneSampler:" in (written / "src/acme_none/sampler.py").read_text()
    assert '"acme-samplers"' in (written / "pyproject.toml").read_text()


def test_a_kind_without_a_scaffold_says_so(site, tmp_path, monkeypatch):
    source = DEFINES.replace('scaffold="acme_samplers:templates",', "")
    site.add("acme-samplers", source, api=API_1_1)
    monkeypatch.setenv("ESTIMATOR_PLUGINS", "acme-samplers")
    with pytest.raises(ArgumentError, match=r"acme-samplers 1.0 defines the kind 'sampler' without a scaffold"):
        write_package("acme-none", "sampler", tmp_path)
    with pytest.raises(ArgumentError, match="there is no kind of component 'smpler'; did you mean 'sampler'"):
        write_package("acme-none", "smpler", tmp_path)
