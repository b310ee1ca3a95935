"""Writes a checkpoint with google-research names by TensorFlow. Needs tensorflow, but nothing of this project.

    python record_tensorflow.py [--check]

`recorded/tensorflow/bert_model.ckpt.*` holds the weights of the case `bert_pairs`, and what a training run leaves
beside them: slots of the optimizer and the step.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from parity_cases import CASES, weight

PREFIX = Path(__file__).parent / "recorded" / "tensorflow" / "bert_model.ckpt"
CASE = CASES["bert_pairs"]


def google_names():
    """Every array by its google-research name. The names do not use the package's own table of names."""
    hidden, inner = CASE["hidden_size"], CASE["intermediate_size"]
    found = {}

    def dense(path, foreign, inputs, outputs):
        found[f"{path}/kernel"] = weight(f"{foreign}.weight", (outputs, inputs)).T
        found[f"{path}/bias"] = weight(f"{foreign}.bias", (outputs,))

    def norm(path, foreign):
        found[f"{path}/gamma"] = weight(f"{foreign}.weight", (hidden,))
        found[f"{path}/beta"] = weight(f"{foreign}.bias", (hidden,))

    for name, rows in (
        ("word_embeddings", CASE["vocab_size"]),
        ("token_type_embeddings", 2),
        ("position_embeddings", CASE["max_position_embeddings"]),
    ):
        found[f"bert/embeddings/{name}"] = weight(f"bert.embeddings.{name}.weight", (rows, hidden))
    norm("bert/embeddings/LayerNorm", "bert.embeddings.LayerNorm")
    for layer in range(CASE["num_hidden_layers"]):
        here, there = f"bert/encoder/layer_{layer}", f"bert.encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            dense(f"{here}/attention/self/{part}", f"{there}.attention.self.{part}", hidden, hidden)
        dense(f"{here}/attention/output/dense", f"{there}.attention.output.dense", hidden, hidden)
        norm(f"{here}/attention/output/LayerNorm", f"{there}.attention.output.LayerNorm")
        dense(f"{here}/intermediate/dense", f"{there}.intermediate.dense", hidden, inner)
        dense(f"{here}/output/dense", f"{there}.output.dense", inner, hidden)
        norm(f"{here}/output/LayerNorm", f"{there}.output.LayerNorm")
    dense("bert/pooler/dense", "bert.pooler.dense", hidden, hidden)
    found["output_weights"] = weight("classifier.weight", (CASE["labels"], hidden))
    found["output_bias"] = weight("classifier.bias", (CASE["labels"],))
    return found


def write():
    PREFIX.parent.mkdir(parents=True, exist_ok=True)
    values = google_names()
    values["output_bias/adam_m"] = np.ones(CASE["labels"], np.float32)
    values["global_step"] = np.array(7, np.int64)
    with tf.Graph().as_default():
        variables = {name: tf.compat.v1.Variable(value) for name, value in values.items()}
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            saver = tf.compat.v1.train.Saver(variables)
            saver.save(session, str(PREFIX), write_meta_graph=False)
    state = PREFIX.parent / "checkpoint"
    state.write_text(re.sub(r'"/.*/', '"', state.read_text()))


def check():
    reader = tf.train.load_checkpoint(str(PREFIX))
    wrong = [name for name, value in google_names().items() if not np.array_equal(reader.get_tensor(name), value)]
    print(f"differs in {wrong}" if wrong else "as recorded")
    return len(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    sys.exit(check() if parser.parse_args().check else write())
