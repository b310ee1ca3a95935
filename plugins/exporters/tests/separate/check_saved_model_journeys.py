"""Reads exports of canned models with TensorFlow only: `python check_saved_model_journeys.py DIRECTORY`."""

import base64
import subprocess
import sys
from pathlib import Path

import compare
import journeys
import numpy as np
import tensorflow as tf

CLASSIFY = {"classes", "scores"}
COMMAND = Path(sys.executable).with_name("saved_model_cli")


def rows(folder, kind):
    """The tensors of a request, by their names in the predict signature."""
    requests = journeys.written(folder, "requests")
    if kind == "examples":
        return {"examples": tf.constant([base64.b64decode(record) for record in requests["examples"]])}
    return requests["features"]


def check(folder):
    expected, paths = journeys.written(folder, "expected"), journeys.written(folder, "paths")
    for kind, path in paths.items():
        module = tf.saved_model.load(str(folder / path))
        signature = module.signatures["predict"]
        specs = signature.structured_input_signature[1]
        batch = {name: tf.constant(value, specs[name].dtype) for name, value in rows(folder, kind).items()}
        assert batch.keys() == specs.keys(), (folder.name, kind, sorted(specs))
        found = {name: value.numpy() for name, value in signature(**batch).items()}
        journeys.agree(found, folder, kind)
    check_default(folder, paths["examples"], expected)


def check_default(folder, path, expected):
    """Checks the default signature: it takes records as "inputs", returns class names, and has its method's name."""
    signature = tf.saved_model.load(str(folder / path)).signatures["serving_default"]
    found = signature(inputs=rows(folder, "examples")["examples"])
    shown = tool("show", folder / path, "--signature_def", "serving_default")
    if "classifier" in folder.name:
        assert set(found) == CLASSIFY
        assert journeys.texts(found["classes"].numpy()) == journeys.texts(np.asarray(expected["all_classes"]))
        np.testing.assert_allclose(found["scores"].numpy(), expected["probabilities"], atol=compare.TOLERANCE)
        assert "Method name is: tensorflow/serving/classify" in shown, shown
    else:
        np.testing.assert_allclose(found["outputs"].numpy(), expected["predictions"], atol=compare.TOLERANCE)
        assert "Method name is: tensorflow/serving/regress" in shown, shown
    assert "dtype: DT_STRING" in shown, shown


def check_command(folder):
    """Runs the command that a user of TensorFlow types."""
    path = folder / journeys.written(folder, "paths")["examples"]
    example = (
        '{"age":[31.0],"sex":["male"],"port":["Cherbourg"],"ticket":[7],"tags":["crew","band"],"weights":[0.5,1.0]}'
    )
    shown = tool("run", path, "--signature_def", "serving_default", "--input_examples", f"inputs=[{example}]")
    assert "Result for output key classes" in shown, shown
    assert "lived" in shown, shown


def tool(verb, path, *more):
    command = [str(COMMAND), verb, "--dir", str(path), "--tag_set", "serve", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    compare.refuse_installed((*compare.ABSENT, "jax"))
    for one in journeys.folders(sys.argv[1]):
        check(one)
    check_command(Path(sys.argv[1]) / "linear_classifier")
    print(f"TensorFlow {tf.__version__}")
