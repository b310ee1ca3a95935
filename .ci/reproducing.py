"""The session `reproduce`: runs of the examples, run again in environments that uv builds from their records."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

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
    "signatures",
    "warm_start",
)
LIBRARIES = ("flax", "scikit-learn", "tqdm")


class Example(NamedTuple):
    """How an example is run.

    Args:
        settings: what makes it short.
        flag: one other setting.
        data: the file of which a byte is changed; "": it has no data file.
    """

    settings: Sequence[str]
    flag: str
    data: str = ""


EXAMPLES = {
    "iris": Example(
        ("train.max_steps=100", "run_config.save_checkpoints_steps=100"),
        "model.args.optimizer.args.learning_rate=0.03",
        "iris.csv",
    ),
    "digits": Example(
        ("train.max_steps=40", "run_config.save_checkpoints_steps=40", "exporters=[]", "hooks=[]"),
        "hparams.learning_rate=0.003",
    ),
    "two_tower": Example(
        ("train.max_steps=40", "run_config.save_checkpoints_steps=40", "exporters=[]", "hooks=[]"),
        "hparams.learning_rate=0.002",
    ),
    "bert": Example(
        ("train.max_steps=8", "run_config.save_checkpoints_steps=8"),
        "model.args.learning_rate=0.0006",
        "reviews/train.tsv",
    ),
}
SEED = "run_config.tf_random_seed=2"


@nox.session(python="3.11", default=False)
def reproduce(session: nox.Session) -> None:
    """Wheels run the examples; `estimator reproduce` builds their environment, and names what is changed."""
    uv, folder = find_uv_bin(), Path(session.create_tmp()).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    wheels, runs = folder / "wheels", folder / "runs"
    for package in (".", *(f"plugins/{name}" for name in PLUGINS)):
        session.run(
            uv, "build", "--quiet", "--wheel", "--no-sources", "--out-dir", str(wheels), str(ROOT / package),
            external=True,
        )  # fmt: skip
    session.install("--no-sources", *map(str, wheels.glob("*.whl")), *LIBRARIES)
    shutil.copytree(ROOT / "examples", folder / "examples")
    env = {"PATH": os.pathsep.join([str(Path(uv).parent), *session.env.get("PATH", os.environ["PATH"]).split(":")])}
    with session.chdir(folder):
        for name, example in EXAMPLES.items():
            chosen = [word for text in example.settings for word in ("--set", text)]
            words = ["run", f"examples/{name}.toml", "--model-dir", f"runs/{name}", "--predictions", "0", *chosen]
            session.run("estimator", *words, env=env)
            session.run("estimator", "reproduce", f"runs/{name}", env=env)
            for kind, text in (("flag", example.flag), ("seed", SEED)):
                _check_named(
                    session, env, name, f"The first difference: {kind} {text.partition('=')[0]}: was ", "--set", text
                )
            if example.data:
                changed = folder / "examples" / example.data
                whole = changed.read_bytes()
                changed.write_bytes(_with_another_byte(whole))
                _check_named(session, env, name, "The first difference: data ")
                changed.write_bytes(whole)
        record = json.loads(next((runs / "iris" / "capsules").glob("*.json")).read_text())
        version = record["packages"]["absl-py"]["version"]
        session.install("--no-deps", f"absl-py!={version}")
        for name in EXAMPLES:
            _check_named(session, env, name, f"Also different: package absl-py: was {version}, now ")


def _with_another_byte(content: bytes) -> bytes:
    """A file that can still be read: its last digit changes, or its last letter where it has no digit."""
    letters = bytes(range(ord("a"), ord("z") + 1))
    kind = next(each for each in (b"0123456789", letters) if any(byte in each for byte in content))
    place = max(at for at, byte in enumerate(content) if byte in kind)
    return content[:place] + bytes([kind[0] if content[place] != kind[0] else kind[1]]) + content[place + 1 :]


def _check_named(session: nox.Session, env: Mapping[str, str], name: str, words: str, *more: str) -> None:
    """Checks that a changed run of an example is told by these words. absl-py changes no weights."""
    shutil.rmtree("other", ignore_errors=True)
    told = session.run(
        "estimator", "reproduce", f"runs/{name}", "--here", "--output", "other", *more, env=env, silent=True,
        success_codes=[0, 1],
    )  # fmt: skip
    session.log(f"{name}: {told}")
    if words not in str(told):
        session.error(f"{words!r} of {name} was not named.")
