"""The session `gpu`: what only a card can show, with the name of the card; skipped by name where none is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import nox
from export_sessions import House

FOLDER = "plugins/backends_gpu/tests"
#: Steps of a small network and of BERT, beside hand-written loops; the second one beside the Trainer of transformers
#: too, where `-- PYTHON` names a Python that has it.
PEERS = (("mlp_steps.py", "--rounds", "7"), ("bert.py", "--size", "mini", "--rounds", "5"))


def cards() -> list[str]:
    """The names of the cards that the driver of this machine sees."""
    if shutil.which("nvidia-smi") is None:
        return []
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return told.stdout.splitlines() if told.returncode == 0 else []


def define_card_session(house: House, everything: list[str], root: Path) -> None:
    """Adds the session."""

    @nox.session(python=house.python, default=False)
    def gpu(session: nox.Session) -> None:
        """Tests and figures on the cards of this machine; `-- PYTHON` names one with torch and transformers."""
        found = cards()
        if not found:
            session.skip("nvidia-smi names no card: the session `gpu` needs one (`gpu_aot` compiles without)")
        session.log(f"cards: {', '.join(found)}")
        install(session, house, everything)
        figures = root / ".nox" / "gpu"
        figures.mkdir(parents=True, exist_ok=True)
        peers, session.posargs[:] = list(session.posargs), []  # pytest would take them for its own
        with house.outside(session, FOLDER, "benchmarks", "examples") as env:
            seen = {**env, "JAX_PLATFORMS": None, "CARDS_FIGURES": str(figures / "figures.jsonl")}
            house.pytest(session, f"{FOLDER}/separate/on_cards.py", env=seen)
            house.pytest(session, f"{FOLDER}/separate/compile_for_cards.py", env=env)
            house.pytest(session, "-m=not slow", FOLDER, env=env)
            for script, *options in PEERS:
                torch = ["--torch-python", peers[0]] if peers and script == "bert.py" else []
                out = ["--json", str(figures / script.replace(".py", ".json"))]
                beside = {**seen, "PYTHONPATH": "benchmarks", "PYTHONSAFEPATH": None}
                session.run("python", f"benchmarks/{script}", *options, *torch, *out, env=beside)
        session.log(f"figures of {found[0]} are in {figures}")

    _ = gpu


def install(session: nox.Session, house: House, everything: list[str]) -> None:
    """All packages, and jax's CUDA plugin."""
    extras = {"estimator_backends_gpu": ("cuda",)}
    session.install("--no-sources", *(house.wheel(package, *extras.get(package, ())) for package in everything))
    session.install("--group", "libraries", "--group", "test")
