"""An organisation's monorepo, made of nothing but wheels: its policy, its lock, and a run that is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.plugins.fake_site import Site

pytestmark = pytest.mark.plugins

PLUGIN = """
ESTIMATOR_PLUGIN_API = (1, 2)

from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="head", name="binary_class", target="{package}.heads:make", summary="A fixture.")]
"""
HEADS = """
def make(**arguments):
    from estimator_core.heads import Head
    {body}
"""
EXPLOSIVE = "raise AssertionError('this module must not be imported')\n"
POLICY = """
[plugins]
allow = ["acme-heads", "estimator-heads", "estimator-policy", "free-widgets"]
block = ["free-widgets"]
lock = "estimator-plugins.lock"

[plugins.overrides]
head.binary_class = "acme-heads"
"""
TRAIN = """
import json
import sys

import numpy as np
import optax

import estimator_core as ec
from estimator_core.plugins import default_plugins

plugins = default_plugins()
print("head:", plugins.find("head", "binary_class").plugin.label, plugins.get("head", "binary_class").__module__)


def model_fn(features, mode):
    loss = ((features["x"] @ ec.get_variable("w", (3,))) ** 2).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


ec.Estimator(model_fn, "model").train(lambda: iter([{"x": np.ones((4, 3), np.float32)}]), steps=1)
"""


def wheel(folder: Path, distribution: str, version: str, files: dict[str, str]) -> Path:
    """Writes a wheel as a build tool does, RECORD included."""
    package = distribution.replace("-", "_")
    info = f"{package}-{version}.dist-info"
    texts = {f"{package}/{name}": text for name, text in ({"__init__.py": ""} | files).items()}
    texts[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    texts[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts[f"{info}/entry_points.txt"] = f"[estimator.plugins]\n{package} = {package}.plugin\n"
    lines = [f"{name},sha256={_digest(text)},{len(text)}" for name, text in texts.items()]
    texts[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"{package}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def install(site: Site, path: Path) -> None:
    """Installs a wheel of Python alone: its files, where the path of the interpreter finds them."""
    package = path.name.partition("-")[0]
    for old in (site.path / package, *site.path.glob(f"{package}-*.dist-info")):
        shutil.rmtree(old, ignore_errors=True)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(site.path)


def acme_heads(folder: Path, body: str) -> Path:
    return wheel(
        folder,
        "acme-heads",
        "2.0",
        {"plugin.py": PLUGIN.format(package="acme_heads"), "heads.py": HEADS.format(body=body)},
    )


def test_a_monorepo_overrides_blocks_and_locks_and_a_changed_package_is_refused_by_name(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    install(site, acme_heads(wheels, "return Head"))
    install(site, wheel(wheels, "free-widgets", "1.0", {"plugin.py": EXPLOSIVE}))
    project = tmp_path / "monorepo"
    project.mkdir()
    (project / "estimator.toml").write_text(POLICY)
    (project / "train.py").write_text(TRAIN)
    monkeypatch.chdir(project)

    unlocked = site.run("plugins")  # the policy names a lock that nobody has written
    assert unlocked.returncode == 1
    assert "estimator-plugins.lock, which cannot be read" in unlocked.stderr
    locked = site.run("plugins", "lock")
    assert locked.returncode == 0, locked.stderr
    assert "acme-heads 2.0" in locked.stdout
    assert "free-widgets" not in locked.stdout

    trained = site.python("train.py")
    assert trained.returncode == 0, trained.stderr
    assert "head: acme-heads 2.0 acme_heads.heads" in trained.stdout
    (manifest,) = (project / "model" / "checkpoints").glob("1/manifest.json")
    rows = {row["distribution"]: row for row in _plugins(json.loads(manifest.read_text()))}
    lock = {row["distribution"]: row for row in json.loads(Path("estimator-plugins.lock").read_text())["plugins"]}
    assert rows["acme-heads"]["hash"] == lock["acme-heads"]["hash"]
    assert sorted(rows) == sorted(lock)

    install(site, acme_heads(wheels, "return None"))  # the same version, other code
    refused = site.python("train.py")
    assert refused.returncode == 1
    assert "the lock was made with acme-heads 2.0; here its code is another" in refused.stderr
    assert "head:" not in refused.stdout

    assert site.run("plugins", "lock").returncode == 0  # on purpose now
    resumed = site.python("train.py", environ={"PYTHONWARNINGS": "default"})
    assert resumed.returncode == 0, resumed.stderr
    assert "this checkpoint was made with acme-heads 2.0; here its code is another" in resumed.stderr


def _plugins(manifest: dict[str, object]) -> list[dict[str, str]]:
    extras = manifest.get("extras", manifest)
    assert isinstance(extras, dict)
    return extras["plugins"]
