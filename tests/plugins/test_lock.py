"""Tests of manifests and lock files, which record the code of plugins, and of the runs that they refuse."""

import dataclasses
import importlib
import json
import logging
import sys
import zipfile

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._plugins import Plugins
from estimator_core._plugins.discovery import plugins_to_lock
from estimator_core.errors import PluginError

EXPLOSIVE = "raise AssertionError('this module must not be imported')"


class Tracker:
    """A plugin that is passed in code."""

    ESTIMATOR_PLUGIN_API = (1, 0)


def model_fn(features, mode):
    loss = ((features["x"] @ ec.get_variable("w", (3,))) ** 2).mean()
    return ec.EstimatorSpec(mode, loss=loss, predictions=features["x"], train_op=optax.sgd(0.1))


def batches():
    return iter([{"x": np.ones((4, 3), np.float32)}])


def record(site, distribution, version="1.0", installer="pip"):
    """Writes the RECORD of a package, as an installer does."""
    package = distribution.replace("-", "_")
    info = site.path / f"{package}-{version}.dist-info"
    (info / "INSTALLER").write_text(installer)
    lines = [
        f"{package}/plugin.py,sha256=abc,10",
        f"{info.name}/INSTALLER,sha256={installer},3",
        f"../../bin/{package},sha256={installer},3",
        f"{package}/__pycache__/plugin.cpython-311.pyc,,",
        f"{info.name}/RECORD,,",
    ]
    (info / "RECORD").write_text("\n".join(lines) + "\n")
    return info / "RECORD"


def hash_of(plugins, distribution="acme"):
    return {row["distribution"]: row["hash"] for row in plugins.versions()}[distribution]


def write(path, rows):
    path.write_text(json.dumps({"format": 1, "plugins": rows}))
    return str(path)


def test_the_hash_is_that_of_the_record_whoever_installed_it(site):
    site.add("acme", "")
    record(site, "acme", installer="pip")
    first = hash_of(site.plugins())
    file = record(site, "acme", installer="uv")
    assert hash_of(site.plugins()) == first
    (site.path / "acme" / "plugin.py").write_text("ESTIMATOR_PLUGIN_API = (1, 0)\n# changed by hand\n")
    assert hash_of(site.plugins()) == first  # RECORD lists what was installed
    file.write_text(file.read_text().replace("sha256=abc", "sha256=abd"))
    assert hash_of(site.plugins()) != first


def test_of_an_editable_installation_it_is_that_of_the_sources(site):
    site.add("acme", "", files={"rows.csv": "1\n"})
    origin = record(site, "acme").with_name("direct_url.json")
    origin.write_text(json.dumps({"url": "file:///somewhere", "dir_info": {"editable": True}}))
    first = hash_of(site.plugins())
    (site.path / "acme" / "__pycache__").mkdir(exist_ok=True)
    (site.path / "acme" / "__pycache__" / "plugin.cpython-311.pyc").write_bytes(b"1")
    (site.path / "acme" / ".plugin.py.swp").write_bytes(b"1")
    assert hash_of(site.plugins()) == first
    (site.path / "acme" / "rows.csv").write_text("2\n")
    assert hash_of(site.plugins()) != first


def test_a_package_that_another_folder_hides_has_the_hash_of_what_is_imported(site, tmp_path, monkeypatch):
    """The working directory comes first on the path and holds other code with the name in the metadata."""
    site.add("acme", "")
    record(site, "acme")
    installed = hash_of(site.plugins())
    lock = write(tmp_path / "lock", site.plugins().versions())
    (tmp_path / "work" / "acme").mkdir(parents=True)
    (tmp_path / "work" / "acme" / "__init__.py").write_text("")
    (tmp_path / "work" / "acme" / "plugin.py").write_text(EXPLOSIVE)
    site.forget()
    monkeypatch.syspath_prepend(str(tmp_path / "work"))
    with pytest.raises(PluginError, match=r"the lock was made with acme 1\.0; here its code differs"):
        site.plugins(lock=lock).records()
    (tmp_path / "work" / "acme" / "plugin.py").write_text("ESTIMATOR_PLUGIN_API = (1, 0)\n")
    assert hash_of(site.plugins()) != installed
    for name in ("acme", "acme.plugin"):
        sys.modules.pop(name, None)


def test_a_package_in_a_namespace_is_hashed_alone(site):
    """Sources of another distribution in the same namespace do not belong to it."""
    for name in ("one", "two"):
        (site.path / "spread" / name).mkdir(parents=True)
        (site.path / "spread" / name / "__init__.py").write_text("ESTIMATOR_PLUGIN_API = (1, 0)\n")
    info = site.path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[estimator.plugins]\nacme = spread.one\n")
    first = hash_of(site.plugins())
    (site.path / "spread" / "two" / "__init__.py").write_text("changed = 1\n")
    assert hash_of(site.plugins()) == first
    (site.path / "spread" / "one" / "__init__.py").write_text("ESTIMATOR_PLUGIN_API = (1, 0)\nchanged = 1\n")
    assert hash_of(site.plugins()) != first


def test_a_plugin_given_in_code_is_written_down():
    (row,) = [row for row in Plugins(autoload=False, extra=[Tracker()]).versions() if row["version"] == ""]
    assert row["distribution"] == "code:Tracker"
    assert row["hash"].startswith("sha256:")


def test_no_distribution_can_pass_for_one_given_in_code(site):
    site.add("tracker", "", name="code")
    names = [row["distribution"] for row in site.plugins(extra=[Tracker()]).versions()]
    assert names == ["code:Tracker", "estimator-core", "tracker"]


def test_a_zip_on_the_path_has_the_hash_of_its_record(site, tmp_path, monkeypatch):
    site.add("acme", "")
    record(site, "acme")
    wanted = hash_of(site.plugins())
    with zipfile.ZipFile(tmp_path / "acme.zip", "w") as archive:
        for path in site.path.rglob("*"):
            archive.write(path, path.relative_to(site.path))
    site.remove("acme")
    monkeypatch.syspath_prepend(str(tmp_path / "acme.zip"))
    assert hash_of(Plugins(only=["acme"], environ={})) == wanted
    for name in ("acme", "acme.plugin"):
        del sys.modules[name]


def test_a_lock_holds_for_what_it_names(site, tmp_path):
    site.add_component("acme", "head", "one")
    lock = write(tmp_path / "lock", site.plugins().versions())
    assert site.plugins(lock=lock).names("head") == ("one",)
    assert site.plugins(environ={"ESTIMATOR_PLUGINS_LOCK": lock}).names("head") == ("one",)


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_changed_code_is_refused_before_it_is_imported(site, tmp_path, how):
    site.add("acme", "")
    lock = write(tmp_path / "lock", plugins_to_lock({"ESTIMATOR_PLUGINS": "acme"}))
    (site.path / "acme" / "plugin.py").write_text(EXPLOSIVE)
    arguments = {"lock": lock} if how == "argument" else {"environ": {"ESTIMATOR_PLUGINS_LOCK": lock}}
    with pytest.raises(PluginError, match=r"the lock was made with acme 1\.0; here its code differs \(sha256:"):
        site.plugins(**arguments).records()
    assert "acme.plugin" not in sys.modules


def test_added_missing_and_upgraded_plugins_are_refused_and_named(site, tmp_path):
    site.add("gone", "")
    site.add("older", "")
    lock = write(tmp_path / "lock", site.plugins().versions())
    site.remove("gone")
    site.remove("older")
    site.add("older", "", version="2.0")
    site.add("stranger", "")
    with pytest.raises(PluginError) as caught:
        site.plugins(lock=lock).records()
    text = str(caught.value)
    assert "the lock was made with gone 1.0, which is not in use here: pip install gone==1.0" in text
    assert "the lock was made with older 1.0; here it is 2.0" in text
    assert "the lock was made without stranger 1.0, which is in use here" in text
    assert f"`estimator plugins lock {lock}`" in text


def test_a_plugin_given_in_code_is_locked_too(site, tmp_path):
    lock = write(tmp_path / "lock", site.plugins().versions())
    with pytest.raises(PluginError, match="made without the plugin Tracker given in code, which is in use here"):
        site.plugins(lock=lock, extra=[Tracker()]).records()
    named = write(tmp_path / "lock", site.plugins(extra=[Tracker()]).versions())
    locked = site.plugins(lock=named, extra=[Tracker()])
    assert [one.name for one in locked.records() if one.usable] == ["core", "Tracker"]


def test_code_without_a_file_cannot_be_locked(site, tmp_path):
    unwritten = type("Unwritten", (), {"ESTIMATOR_PLUGIN_API": (1, 0), "__module__": "nowhere"})()
    plugins = site.plugins(extra=[unwritten])
    lock = write(tmp_path / "lock", plugins.versions())
    with pytest.raises(
        PluginError, match="the plugin Unwritten given in code has no files, so its code cannot be verified"
    ):
        site.plugins(lock=lock, extra=[unwritten]).records()


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"plugins": 7}', '{"plugins": [{"distribution": 1}]}'])
def test_a_lock_that_cannot_be_read_locks_everything(site, tmp_path, text):
    file = tmp_path / "lock"
    if text is not None:
        file.write_text(text)
    with pytest.raises(PluginError, match=r"plugins are locked by .*, which cannot be read") as caught:
        site.plugins(lock=str(file)).records()
    assert f"`estimator plugins lock {file}` writes one" in str(caught.value)


def test_a_blocked_plugin_needs_no_place_in_the_lock(site, tmp_path):
    site.add("acme", "")
    lock = write(tmp_path / "lock", site.plugins().versions())
    site.add("stranger", EXPLOSIVE)
    plugins = site.plugins(block=["stranger"], lock=lock)
    assert {one.name: one.status for one in plugins.records()}["stranger"] == "blocked"


@pytest.mark.parametrize("call", ["train", "evaluate", "predict"])
def test_a_run_config_locks_every_call(site, tmp_path, call):
    site.add("acme", "")
    lock = write(tmp_path / "lock", site.plugins().versions())
    config = ec.RunConfig(model_dir=str(tmp_path / "model"), plugins_lock=lock)
    ec.Estimator(model_fn, config=config, plugins=site.plugins()).train(batches, steps=1)
    site.add("stranger", "")
    estimator = ec.Estimator(model_fn, config=config, plugins=site.plugins())
    with pytest.raises(PluginError, match=r"made without stranger 1\.0"):
        list(getattr(estimator, call)(batches) or ())


def test_a_restored_run_tells_what_was_added_changed_and_is_missing(site, tmp_path, caplog):
    def train(**arguments):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "estimator_core"):
            ec.Estimator(model_fn, str(tmp_path / "model"), plugins=site.plugins(**arguments)).train(batches, steps=1)
        told = [one.getMessage() for one in caplog.records if "was made with" in one.getMessage()]
        assert len(told) <= 1, "all that differs is one warning"
        return sorted(line.strip() for text in told for line in text.splitlines())

    site.add("gone", "")
    site.add("edited", "")
    assert train() == []
    site.remove("gone")
    (site.path / "edited" / "plugin.py").write_text("ESTIMATOR_PLUGIN_API = (1, 0)\nchanged = 1\n")
    site.add("stranger", "")
    changed, missing, added = train()
    assert "made with edited 1.0; here its code differs" in changed
    assert "made with gone 1.0, which is not in use here" in missing
    assert "made without stranger 1.0, which is in use here" in added
    site.remove("stranger")
    with pytest.raises(PluginError, match=r"plugins are strict and these differ:\n  .*made with stranger 1\.0"):
        train(strict=True)


def test_a_checkpoint_of_an_older_core_is_compared_by_versions(site, caplog):
    site.add("acme", "")
    plugins = site.plugins()
    with caplog.at_level(logging.WARNING, "estimator_core"):
        plugins.require_made_with([])  # before manifests named plugins
        plugins.require_made_with(
            [{"distribution": row["distribution"], "version": row["version"]} for row in plugins.versions()]
        )
    assert caplog.records == []


def test_all_that_an_upgrade_changes_is_one_warning_once(site, caplog):
    site.add("acme", "")
    plugins = site.plugins()
    row = {"distribution": "gone", "version": "1.0"}
    with caplog.at_level(logging.WARNING, "estimator_core"):
        for other in ("other", "other", "another"):  # like three evaluations of checkpoints, the third of another run
            plugins.require_made_with([row, {"distribution": other, "version": "2.0"}])
    told = [record.getMessage() for record in caplog.records]
    assert [len(text.splitlines()) for text in told] == [len(plugins.versions()) + 2] * 2, "a line for each package"
    assert "other 2.0, which is not in use here" in told[0]
    assert "another 2.0, which is not in use here" in told[1]


def test_an_object_that_was_pickled_is_locked_as_before(site, tmp_path):
    import pickle

    site.add("acme", "")
    lock = write(tmp_path / "lock", site.plugins().versions())
    sent = pickle.dumps(site.plugins(lock=lock))
    site.add("stranger", "")
    (site.path / "acme" / "plugin.py").write_text(EXPLOSIVE)
    importlib.invalidate_caches()
    with pytest.raises(PluginError, match="here its code differs"):
        pickle.loads(sent).records()


def test_the_field_of_the_configuration_is_kept(tmp_path):
    config = ec.RunConfig(model_dir=str(tmp_path), plugins_lock="plugins.lock")
    assert dataclasses.asdict(config)["plugins_lock"] == "plugins.lock"
