"""Trains, exports, and writes the predictions of the estimator: `python write_exports.py FORMAT DIRECTORY`.

Each model has a folder in DIRECTORY: `path.txt` names its export, `inputs_7.npz` and `expected_7.npz` are a batch of 7.
"""

import sys
from pathlib import Path

import numpy as np
from models import BATCHES, MODELS

import estimator_core as ec


def write(name, format_name, folder):
    model_fn, inputs = MODELS[name]
    folder.mkdir(parents=True)
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    input_fn = ec.inputs.numpy_input_fn(inputs(32), batch_size=8, num_epochs=None, shuffle=False)
    estimator = ec.Estimator(model_fn, config=config).train(input_fn, max_steps=3)
    features = {key: ec.export.Feature((None, *x.shape[1:]), str(x.dtype)) for key, x in inputs(1).items()}
    receiver_fn = ec.export.build_raw_serving_input_receiver_fn(features)
    path = estimator.export_saved_model(str(folder / "export"), receiver_fn, format=format_name)
    (folder / "path.txt").write_text(str(Path(path).relative_to(folder)))
    predict = estimator.predictor()
    for batch in BATCHES:
        np.savez(folder / f"inputs_{batch}.npz", **inputs(batch))
        np.savez(folder / f"expected_{batch}.npz", **predict(inputs(batch)))
    loaded = ec.export.load(path)
    print(f"{name}: {sorted(loaded.signatures)}", flush=True)


if __name__ == "__main__":
    for model in MODELS:
        write(model, sys.argv[1], Path(sys.argv[2], model))
    if sys.argv[1] == "onnx":
        from raw_journey import write as write_raw

        write_raw(Path(sys.argv[2], "raw", "journey"))
