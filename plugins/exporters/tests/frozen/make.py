"""Makes the export that later versions must be able to read: `python make.py`, once per format version."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_exporters.stablehlo import StableHLOFormat
from estimator_signatures.without_paths import without_paths

HERE = Path(__file__).parent
INPUTS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3) / 10, "ids": np.array([2, 0], np.int32)}


def scores(variables, inputs):
    hidden = jnp.tanh(inputs["x"] @ variables["layer/0/kernel"]) + variables["table"][inputs["ids"]]
    return {"scores": hidden, "classes": jnp.argmax(hidden, axis=-1)}


def main():
    signature = SignatureSpec(
        name="serving_default",
        method="classify",
        inputs={"x": Feature((None, 3)), "ids": Feature((None,), "int32")},
        outputs={"scores": Feature((None, 2)), "classes": Feature((None,), "int32")},
        function=scores,
        class_names=("no", "yes"),
    )
    variables = {
        "layer/0/kernel": np.array([[1, -1], [0.5, 2], [-3, 0]], np.float32),
        "table": np.array([[0, 1], [1, 0], [0.25, 0.5]], np.float32),
    }
    asset = HERE / "words.txt"
    asset.write_text("no\nyes\n")
    request = ExportRequest(
        signatures={"serving_default": signature},
        variables=variables,
        assets={"words.txt": asset},
        global_step=7,
        provenance={"versions": {"jax": jax.__version__}},
    )
    directory = HERE / "stablehlo_1"
    directory.mkdir()
    with without_paths():  # as for every `write` of an export
        StableHLOFormat().write(request, directory)
    asset.unlink()
    outputs = StableHLOFormat().load(directory).signatures["serving_default"](**INPUTS)
    (HERE / "stablehlo_1.json").write_text(json.dumps({name: value.tolist() for name, value in outputs.items()}))


if __name__ == "__main__":
    main()
