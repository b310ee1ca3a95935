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
    return _write(
        folder,
        {
            "random": random,
            "train_batches": train,
            "eval_batches": evaluation,
            "losses": losses,
            "gradients": gradients[0],
            **({"later_gradients": gradients[1:]} if adam else {}),
            "weights": weights,
            "start": start,
            "end": evaluated(),
        },
    )


def write_table_recording(folder: Path) -> Path:
    """Records a table `w` with one row for each id, and a bias `b`. A step moves only the rows of its batch.

    The optimizer divides a gradient by its mean size, and weights decay.
    """
    rng = np.random.default_rng(0)
    labels = rng.normal(size=(4, 3)).astype(np.float32)
    ids = np.array([[0, 1, 1], [2, 3, 0], [3, 3, 4], [0, 2, 5]])
    batches = [{"features": {"id": ids[row]}, "labels": labels[row]} for row in range(4)]
    values = {"w": rng.normal(size=(6, 1)).astype(np.float32), "b": np.array(0.5, np.float32)}
    squares = {name: np.zeros_like(value, np.float64) for name, value in values.items()}

    def predicted(batch):
        return values["w"][batch["features"]["id"], 0] + values["b"]

    def evaluated():
        y = predicted(batches[3])
        return {"metrics": {"loss": np.mean((y - batches[3]["labels"]) ** 2)}, "predictions": [{"y": y}]}

    start, losses, gradients, weights = evaluated(), [], [], [dict(values)]
    for batch in batches[:3]:
        apart = predicted(batch) - batch["labels"]
        losses.append(np.mean(apart**2))
        slope = {"w": np.zeros((6, 1)), "b": 2 * np.mean(apart)}
        np.add.at(slope["w"][:, 0], batch["features"]["id"], 2 * apart / 3)
        gradients.append(slope)
        touched = {"w": np.isin(np.arange(6), batch["features"]["id"])[:, None], "b": True}
        for name, value in values.items():
            squares[name] = np.where(touched[name], 0.9 * squares[name] + 0.1 * slope[name] ** 2, squares[name])
            scaled = slope[name] / np.sqrt(squares[name] + 1e-12)
            values[name] = np.where(touched[name], value - RATE * (scaled + 0.1 * value), value).astype(np.float32)
        weights.append(dict(values))
    quantities = {"losses": losses, "gradients": gradients[0], "later_gradients": gradients[1:], "weights": weights}
    run = {"train_batches": batches[:3], "eval_batches": batches[3:], "start": start, "end": evaluated()}
    return _write(folder, {"random": False, **quantities, **run})


def _write(folder: Path, quantities) -> Path:
    arrays = _Arrays()
    kept = {name: value if name == "random" else arrays.tree(value) for name, value in quantities.items()}
    folder.mkdir()
    np.savez(folder / "arrays.npz", **arrays.kept)
    record = {"tensorflow": "0.0", "python": "3.0", "trainable": ["w", "b"], **kept}
    (folder / "record.json").write_text(json.dumps(record))
    return folder
