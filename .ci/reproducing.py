"""The session `reproduce`: repeats runs of the examples in environments that uv builds from their records."""

import gzip
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
    """The settings of an example for this session.

    Args:
        settings: the settings that make it short.
        flag: a further setting.
        data: the file in which a byte is changed: next to the example, or in an installed package.
    """

    settings: Sequence[str]
    flag: str
    data: str


EXAMPLES = {
    "iris": Example(
        ("train.max_steps=100", "run_config.save_checkpoints_steps=100"),
        "model.args.optimizer.args.learning_rate=0.03",
        "iris.csv",
    ),
    "digits": Example(
        ("train.max_steps=40", "run_config.save_checkpoints_steps=40", "exporters=[]", "hooks=[]"),
        "hparams.learning_rate=0.003",
        "sklearn:datasets/data/digits.csv.gz",
    ),
    "two_tower": Example(
        (
            "train.max_steps=40",
            "run_config.save_checkpoints_steps=40",
            "exporters=[]",
            "hooks=[]",
            "inputs.train.args.file=clicks.npy",
        ),
        "hparams.learning_rate=0.002",
        "clicks.npy",
    ),
    "bert": Example(
        ("train.max_steps=8", "run_config.save_checkpoints_steps=8"),
        "model.args.learning_rate=0.0006",
        "reviews/train.tsv",
    ),
}
SEED = "run_config.tf_random_seed=2"
#: The program that records the clicks of the example of two towers.
CLICKS = (
    "import sys, numpy as np; sys.path.insert(0, 'examples'); from two_tower import clicks; x, y = clicks(8192, 7); "
    "np.save('examples/clicks.npy', np.hstack([x['user'], x['item'], y.astype(np.float32)]))"
)


@nox.session(python="3.11", default=False)
def reproduce(session: nox.Session) -> None:
    """Wheels run the examples; `estimator reproduce` builds their environment and names each change."""
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
        session.run("python", "-c", CLICKS)
        for name, example in EXAMPLES.items():
            chosen = [word for text in example.settings for word in ("--set", text)]
            words = ["run", f"examples/{name}.toml", "--model-dir", f"runs/{name}", "--predictions", "0", *chosen]
            session.run("estimator", *words, env=env)
            session.run("estimator", "reproduce", f"runs/{name}", env=env)
            for kind, text in (("flag", example.flag), ("seed", SEED)):
                _check_named(
                    session, env, name, f"The first difference: {kind} {text.partition('=')[0]}: was ", "--set", text
                )
            changed = _file(session, folder, example.data)
            whole = changed.read_bytes()
            _replace(changed, _with_another_byte(whole))
            _check_named(session, env, name, "The first difference: data ")
            _replace(changed, whole)
        record = json.loads(next((runs / "iris" / "capsules").glob("*.json")).read_text())
        version = record["packages"]["absl-py"]["version"]
        session.install("--no-deps", f"absl-py!={version}")
        for name in EXAMPLES:
            _check_named(session, env, name, f"Also different: package absl-py: was {version}, now ")


def _file(session: nox.Session, folder: Path, name: str) -> Path:
    """Returns the path of a data file."""
    package, _, inside = name.rpartition(":")
    if not package:
        return folder / "examples" / inside
    code = f"import importlib.util; print(importlib.util.find_spec({package!r}).submodule_search_locations[0])"
    return Path(str(session.run("python", "-c", code, silent=True)).strip()) / inside


def _replace(path: Path, content: bytes) -> None:
    """Writes a new file, because a file that an installer has linked to its cache must not change."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_bytes(content)
    draft.replace(path)


def _with_another_byte(content: bytes) -> bytes:
    """Returns the content with another last digit, or another last letter if it has no digit, so the file can still be
    read. A packed file is unpacked first.
    """
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(_with_another_byte(gzip.decompress(content)), mtime=0)
    letters = bytes(range(ord("a"), ord("z") + 1))
    kind = next(each for each in (b"0123456789", letters) if any(byte in each for byte in content))
    place = max(at for at, byte in enumerate(content) if byte in kind)
    return content[:place] + bytes([kind[0] if content[place] != kind[0] else kind[1]]) + content[place + 1 :]


def _check_named(session: nox.Session, env: Mapping[str, str], name: str, words: str, *more: str) -> None:
    """Checks that these arguments report a changed run of an example. absl-py changes no weights."""
    shutil.rmtree("other", ignore_errors=True)
    told = session.run(
        "estimator", "reproduce", f"runs/{name}", "--here", "--output", "other", *more, env=env, silent=True,
        success_codes=[0, 1],
    )  # fmt: skip
    session.log(f"{name}: {told}")
    if words not in str(told):
        session.error(f"{words!r} of {name} was not named.")
