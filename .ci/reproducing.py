"""The session `reproduce`: runs of the examples, run again in environments that uv builds from their records."""

import json
import os
import shutil
from pathlib import Path

import nox
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parent.parent
PLUGINS = (
    "canned_bert",
    "canned_tabular",
    "experiment",
    "exporters",
    "heads",
    "hooks",
    "inputs",
    "modules",
    "runs",
    "warm_start",
)
LIBRARIES = ("flax", "scikit-learn", "tqdm")
#: A file, and the settings that make it short.
EXAMPLES = {
    "iris": ("train.max_steps=100", "run_config.save_checkpoints_steps=100"),
    "two_tower": ("train.max_steps=40", "run_config.save_checkpoints_steps=40", "exporters=[]", "hooks=[]"),
    "bert": ("train.max_steps=4", "run_config.save_checkpoints_steps=4"),
}


@nox.session(python="3.11", default=False)
def reproduce(session: nox.Session) -> None:
    """Wheels run the examples; `estimator reproduce` builds their environment, and names a package that is another."""
    uv, folder = find_uv_bin(), Path(session.create_tmp()).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    wheels, runs = folder / "wheels", folder / "runs"
    for package in (".", *(f"plugins/{name}" for name in PLUGINS)):
        session.run(
            uv, "build", "--quiet", "--wheel", "--no-sources", "--out-dir", str(wheels), str(ROOT / package),
            external=True,
        )  # fmt: skip
    found = {path.name.partition("-")[0]: path for path in wheels.glob("*.whl")}
    runs_with_extras = f"{found.pop('estimator_runs')}[sweep]"
    session.install("--no-sources", runs_with_extras, *map(str, found.values()), *LIBRARIES)
    shutil.copytree(ROOT / "examples", folder / "examples")
    env = {"PATH": os.pathsep.join([str(Path(uv).parent), *session.env.get("PATH", os.environ["PATH"]).split(":")])}
    with session.chdir(folder):
        for name, settings in EXAMPLES.items():
            chosen = [word for text in settings for word in ("--set", text)]
            words = ["run", f"examples/{name}.toml", "--model-dir", f"runs/{name}", "--predictions", "0", *chosen]
            session.run("estimator", *words, env=env)
            session.run("estimator", "reproduce", f"runs/{name}", env=env)
        before = json.loads(next((runs / "iris" / "capsules").glob("*.json")).read_text())["packages"]["optax"]
        session.install("--no-deps", "optax<0.2.6" if before["version"] != "0.2.5" else "optax==0.2.4")
        told = session.run(
            "estimator", "reproduce", "runs/iris", "--here", "--output", "other", env=env, silent=True,
            success_codes=[0, 1],
        )  # fmt: skip
    if f"package optax: was {before['version']}" not in str(told):
        session.error(f"The changed package was not named: {told}")
