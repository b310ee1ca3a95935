"""Reads exports of canned models with TensorFlow alone: `python check_saved_model_journeys.py DIRECTORY`."""

import base64
import json
import subprocess
import sys
from pathlib import Path

import compare
import numpy as np
import tensorflow as tf

MODELS = 7
CLASSIFY = {"classes", "scores"}
COMMAND = Path(sys.executable).with_name("saved_model_cli")


def rows(folder, kind):
    """The tensors of a request by the name that the predict signature gives them."""
    requests = json.loads((folder / "requests.json").read_text())
    if kind == "examples":
        return {"examples": tf.constant([base64.b64decode(record) for record in requests["examples"]])}
    return requests["features"]


def texts(value):
    return np.vectorize(lambda item: item.decode() if isinstance(item, bytes) else str(item))(value).tolist()


def difference(found, expected, where):
    greatest = 0.0
    assert set(found) == set(expected), (where, sorted(found), sorted(expected))
    for name, wanted in expected.items():
        value = found[name].numpy()
        if value.dtype == object:
            assert texts(value) == texts(np.asarray(wanted)), (where, name)
            continue
        assert value.shape == np.shape(wanted), (where, name, value.shape, np.shape(wanted))
        greatest = max(greatest, float(np.abs(value - np.asarray(wanted)).max()))
    return greatest


def check(folder):
    expected = json.loads((folder / "expected.json").read_text())
    paths = json.loads((folder / "paths.json").read_text())
    for kind, path in paths.items():
        module = tf.saved_model.load(str(folder / path))
        signature = module.signatures["predict"]
        specs = signature.structured_input_signature[1]
        batch = {name: tf.constant(value, specs[name].dtype) for name, value in rows(folder, kind).items()}
        assert batch.keys() == specs.keys(), (folder.name, kind, sorted(specs))
        greatest = difference(signature(**batch), expected, (folder.name, kind))
        assert greatest <= compare.TOLERANCE, f"{folder.name} differs by {greatest}"
        print(f"{folder.name}, {kind}: greatest difference {greatest:.1e}")
    check_default(folder, paths["examples"], expected)


def check_default(folder, path, expected):
    """Who classifies or regresses takes records as "inputs", gives names of classes, and has the method's name."""
    signature = tf.saved_model.load(str(folder / path)).signatures["serving_default"]
    found = signature(inputs=rows(folder, "examples")["examples"])
    shown = tool("show", folder / path, "--signature_def", "serving_default")
    if "classifier" in folder.name:
        assert set(found) == CLASSIFY
        assert texts(found["classes"].numpy()) == texts(np.asarray(expected["all_classes"]))
        np.testing.assert_allclose(found["scores"].numpy(), expected["probabilities"], atol=compare.TOLERANCE)
        assert "Method name is: tensorflow/serving/classify" in shown, shown
    else:
        np.testing.assert_allclose(found["outputs"].numpy(), expected["predictions"], atol=compare.TOLERANCE)
        assert "Method name is: tensorflow/serving/regress" in shown, shown
    assert "dtype: DT_STRING" in shown, shown


def check_command(folder):
    """What a user of TensorFlow types."""
    path = folder / json.loads((folder / "paths.json").read_text())["examples"]
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
    folders = sorted(path.parent for path in Path(sys.argv[1]).glob("*/paths.json"))
    assert len(folders) == MODELS, folders
    for one in folders:
        check(one)
    check_command(Path(sys.argv[1]) / "linear_classifier")
    print(f"TensorFlow {tf.__version__}")
