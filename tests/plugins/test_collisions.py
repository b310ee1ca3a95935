"""Tests of two plugins with the same component name: a request for it is an error that names both owners and the
fix.
"""

import pytest

from estimator_core.errors import PluginLookupError


def test_two_plugins_with_one_name(site):
    site.add_component("acme-heads", "head", "quantile", "json:loads")
    site.add_component("other-heads", "head", "quantile", "json:dumps")
    plugins = site.plugins()
    with pytest.raises(PluginLookupError) as caught:
        plugins.get("head", "quantile")
    message = str(caught.value)
    assert "acme-heads 1.0 (json:loads)" in message
    assert "other-heads 1.0 (json:dumps)" in message
    assert "'acme-heads:quantile' or 'other-heads:quantile'" in message
    assert plugins.get("head", "acme-heads:quantile").__name__ == "loads"
    assert plugins.get("head", "other_heads:quantile").__name__ == "dumps"
    assert plugins.names("head") == ("acme-heads:quantile", "other-heads:quantile")
    assert site.plugins(block=["acme-heads"]).get("head", "quantile").__name__ == "dumps"


def test_two_entry_points_of_one_package_with_one_name(site):
    """Before, the message offered a choice between 'acme:quantile' and 'acme:quantile'."""
    site.add_component("acme", "head", "quantile")
    (file,) = site.path.glob("acme-*.dist-info/entry_points.txt")
    file.write_text(file.read_text() + "again = acme.again\n")
    (site.path / "acme" / "again.py").write_text((site.path / "acme" / "plugin.py").read_text())
    for name in ("quantile", "acme:quantile"):
        with pytest.raises(PluginLookupError) as caught:
            site.plugins().get("head", name)
        assert str(caught.value).endswith(". Entry points of one package declare it: acme, again. Keep one.")
    for record in site.plugins().records():  # the note said to ask for 'acme:quantile', which is refused
        shared = "head 'quantile' is also provided by acme 1.0; only one entry point of acme may declare it"
        assert (shared in record.notes) == (record.distribution == "acme")


def test_a_plugin_cannot_knock_out_or_replace_a_built_in(site):
    site.add_component("acme", "backend", "cpu", "json:loads")
    plugins = site.plugins()
    with pytest.raises(PluginLookupError, match="'estimator-core:cpu' or 'acme:cpu'"):
        plugins.find("backend", "cpu")
    assert plugins.find("backend", "estimator-core:cpu").plugin.name == "core"
    (note,) = next(record.notes for record in plugins.records() if record.name == "acme")
    assert note == "backend 'cpu' is also provided by estimator-core 0.1.0; ask for 'acme:cpu' or 'estimator-core:cpu'"


def test_one_name_in_two_kinds_is_no_collision(site):
    site.add_component("acme-heads", "head", "best")
    site.add_component("acme-exporters", "exporter", "best")
    plugins = site.plugins()
    assert plugins.find("head", "best").plugin.name == "acme_heads"
    assert plugins.find("exporter", "best").plugin.name == "acme_exporters"


def test_two_distributions_with_one_entry_point_name(site):
    for distribution, component in (("acme", "one"), ("acme-two", "two")):
        site.add(
            distribution,
            f"""
            from estimator_core._plugins import Component

            def estimator_components():
                return [Component(kind="head", name={component!r}, target="json:loads", summary="A fixture.")]
            """,
            name="acme",
        )
    assert site.plugins(only=["acme", "acme-two"]).names("head") == ("one", "two")
    assert site.plugins(only=["acme"]).names("head") == ("one",)
