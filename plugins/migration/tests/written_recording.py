"""Writes with numpy a recording of the old program: a line fitted by gradient descent."""

import json
from pathlib import Path

import numpy as np

RATE = 0.1


class _Arrays:
    def __init__(self) -> None:
        self.kept: dict[str, np.ndarray] = {}

    def tree(self, value):
        if isinstance(value, dict):
            return {"dict": [[key, self.tree(each)] for key, each in value.items()]}
        if isinstance(value, list | tuple):
            return {"tuple": [self.tree(each) for each in value]}
        name = f"a{len(self.kept)}"
        self.kept[name] = np.asarray(value)
        return {"array": name}


def write_recording(
    folder: Path, *, steps: int = 3, random: bool = False, adam: bool = False, sparse: bool = False
) -> Path:
    """Records the values that a model `x @ w + b` computes in float64, from weights drawn once.

    With `adam`, the second feature is so small that its gradient is a rounding error. It sometimes differs by its own
    size, and Adam makes a full step of it. Gradients of all steps are recorded in this case. `sparse` adds a sparse
    feature.
    """
    rng = np.random.default_rng(0)
    batches = [
        {"features": {"x": rng.normal(size=(8, 2)).astype(np.float32)}, "labels": rng.normal(size=8).astype(np.float32)}
        for _ in range(steps + 1)
    ]
    for batch in batches if adam else ():
        batch["features"]["x"][:, 1] *= np.float32(1e-9)
    for width, batch in enumerate(batches if sparse else (), 1):
        batch["features"]["ids"] = np.full((8, width), -1)
    train, evaluation = batches[:steps], batches[steps:]
    w, b = rng.normal(size=2).astype(np.float32), np.float32(0.5)
    moved = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in {"w": w, "b": b}.items()}

    def error(batch):
        return batch["features"]["x"] @ w + b - batch["labels"]

    def evaluated():
        apart = error(evaluation[0])
        metrics = {"loss": np.mean(apart**2), "bias": np.mean(apart), "global_step": 0}
        return {"metrics": metrics, "predictions": [{"y": evaluation[0]["features"]["x"] @ w + b}]}

    def step_of(name, slope, count):
        if not adam:
            return RATE * slope
        m, v = moved[name]
        m, v = moved[name] = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        return RATE * (m / (1 - 0.9**count)) / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)

    start = evaluated()
    losses, weights, gradients = [], [{"w": w, "b": b, "w/Slot": w}], []
    for count, batch in enumerate(train, 1):
        apart = error(batch)
        slopes = {"w": 2 * np.mean(apart[:, None] * batch["features"]["x"], 0), "b": 2 * np.mean(apart)}
        if adam:
            slopes["w"] = slopes["w"] + np.array([0, 3e-9])
        gradients.append(slopes)
        losses.append(np.mean(apart**2))
        w, b = w - step_of("w", slopes["w"], count), b - step_of("b", slopes["b"], count)
        weights.append({"w": w, "b": b, "w/Slot": w})
    arrays = _Arrays()
    record = {
        "tensorflow": "0.0",
        "python": "3.0",
        "random": random,
        "trainable": ["w", "b"],
        "train_batches": arrays.tree(train),
        "eval_batches": arrays.tree(evaluation),
        "losses": arrays.tree(losses),
        "gradients": arrays.tree(gradients[0]),
        **({"later_gradients": arrays.tree(gradients[1:])} if adam else {}),
        "weights": arrays.tree(weights),
        "start": arrays.tree(start),
        "end": arrays.tree(evaluated()),
    }
    folder.mkdir()
    np.savez(folder / "arrays.npz", **arrays.kept)
    (folder / "record.json").write_text(json.dumps(record))
    return folder
