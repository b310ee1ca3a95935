"""Executes a notebook, one cell per line of `CELLS`, with a real kernel. Writes the output of each cell as JSON.

python execute_notebook.py FOLDER
"""

import json
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

PREPARED = """
import os, signal, threading, time
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

def model_fn(features, labels, mode):
    y = features["x"] @ ec.get_variable("w", (4, 1))
    loss = jnp.mean((y[:, 0] - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.01), predictions={"y": y})

x = np.random.default_rng(0).normal(size=(512, 4)).astype(np.float32)

def slow_input():
    time.sleep(2)
    return ec.inputs.numpy_input_fn({"x": x}, x[:, 0], batch_size=32, shuffle=True, num_epochs=None)

once = ec.inputs.numpy_input_fn({"x": x}, x[:, 0], batch_size=32, shuffle=False, num_epochs=1)
estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir="run"))
"""
CELLS = {
    "prepared": PREPARED,
    "trained": "estimator.train(slow_input, steps=2000); None",
    "estimator": "estimator",
    "history": "estimator.history",
    "config": "estimator.config",
    "evaluated": "estimator.evaluate(once)",
    "interrupted": (
        "threading.Timer(4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "estimator.train(slow_input, steps=10_000_000)"
    ),
    "after": "print(estimator.latest_checkpoint())",
}


def main() -> None:
    """Executes the cells in order, and continues after a cell that fails."""
    folder = Path(sys.argv[1])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    shown: dict[str, list[str]] = {name: [] for name in CELLS}
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    names = list(CELLS)
    process = client.process_message

    def listening(message, cell, cell_index):  # every version of the output of a cell, not only the last one
        if message["msg_type"] in ("display_data", "update_display_data"):
            shown[names[cell_index]].append(message["content"]["data"].get("text/html", ""))
        return process(message, cell, cell_index)

    client.process_message = listening
    client.execute()
    cells = {
        name: {"outputs": cell.outputs, "shown": shown[name]} for name, cell in zip(names, notebook.cells, strict=True)
    }
    (folder / "cells.json").write_text(json.dumps(cells))
    nbformat.write(notebook, folder / "executed.ipynb")


if __name__ == "__main__":
    main()
