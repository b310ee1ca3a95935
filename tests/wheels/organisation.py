"""The monorepo of an organisation, made only of wheels: its policy, its lock, and a refused run.

`python organisation.py INSTALLER ...` runs the scenario in the environment of this Python. The installer, such as `uv
pip install --no-deps --reinstall`, receives the path of a wheel. The test of the monorepo runs the scenario in a
folder.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

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
LOCK = "estimator-plugins.lock"
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
    """Writes a wheel like a build tool, including RECORD."""
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


def acme_heads(folder: Path, body: str) -> Path:
    return wheel(
        folder,
        "acme-heads",
        "2.0",
        {"plugin.py": PLUGIN.format(package="acme_heads"), "heads.py": HEADS.format(body=body)},
    )


def story(
    project: Path,
    wheels: Path,
    install: Callable[[Path], object],
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> Iterator[str]:
    """Runs the scenario of the project and yields at each chapter. An assertion fails if the result differs.

    Args:
        project: the folder of the project, which is empty and the working directory.
        wheels: the folder to which the wheels are written.
        install: the function that installs a wheel.
        python: the function that runs Python with these arguments in the project, and with the variables of `environ`.
    """

    def estimator(*words: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "estimator_core._cli.main", *words)

    install(acme_heads(wheels, "return Head"))
    install(wheel(wheels, "free-widgets", "1.0", {"plugin.py": EXPLOSIVE}))
    (project / "estimator.toml").write_text(POLICY)
    (project / "train.py").write_text(TRAIN)
    yield "two wheels are built and installed"

    unlocked = estimator("plugins")  # the policy names a lock that does not exist yet
    assert unlocked.returncode == 1, unlocked
    assert "estimator-plugins.lock, which cannot be read" in unlocked.stderr
    locked = estimator("plugins", "lock")
    assert locked.returncode == 0, locked.stderr
    assert "acme-heads 2.0" in locked.stdout
    assert "free-widgets" not in locked.stdout
    yield "the lock names what the policy allows"

    trained = python("train.py")
    assert trained.returncode == 0, trained.stderr
    assert "head: acme-heads 2.0 acme_heads.heads" in trained.stdout
    (manifest,) = (project / "model" / "checkpoints").glob("1/manifest.json")
    rows = {row["distribution"]: row for row in _plugins(json.loads(manifest.read_text()))}
    lock = {row["distribution"]: row for row in json.loads((project / LOCK).read_text())["plugins"]}
    assert rows["acme-heads"]["hash"] == lock["acme-heads"]["hash"]
    assert sorted(rows) == sorted(lock)
    yield "a run takes the private head in the place of the built-in, and its manifest is the lock"

    install(acme_heads(wheels, "return None"))  # the same version with other code
    refused = python("train.py")
    assert refused.returncode == 1, refused
    assert "the lock was made with acme-heads 2.0; here its code differs" in refused.stderr
    assert "head:" not in refused.stdout
    yield "a run is refused after one package has changed"

    assert estimator("plugins", "lock").returncode == 0  # now on purpose
    resumed = python("train.py", environ={"PYTHONWARNINGS": "default"})
    assert resumed.returncode == 0, resumed.stderr
    assert "this checkpoint was made with acme-heads 2.0; here its code differs" in resumed.stderr
    yield "locked anew, it goes on and names what changed"


def _plugins(manifest: dict[str, object]) -> list[dict[str, str]]:
    extras = manifest.get("extras", manifest)
    assert isinstance(extras, dict)
    return extras["plugins"]


def main() -> None:
    """Runs the scenario in the environment of this Python, and prints the seconds of each chapter."""
    with tempfile.TemporaryDirectory() as folder:
        project, wheels = Path(folder, "project"), Path(folder, "wheels")
        project.mkdir()
        wheels.mkdir()

        def install(path: Path) -> None:
            subprocess.run([*sys.argv[1:], "--python", sys.executable, str(path)], check=True)

        def python(*words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
            kept = {name: value for name, value in os.environ.items() if not name.startswith("ESTIMATOR_")}
            environment = {**kept, **(environ or {})}
            command = [sys.executable, *words]
            return subprocess.run(command, env=environment, cwd=project, capture_output=True, text=True, check=False)

        began = time.perf_counter()
        for chapter in story(project, wheels, install, python):
            print(f"{time.perf_counter() - began:6.1f} s  {chapter}", flush=True)


if __name__ == "__main__":
    main()
