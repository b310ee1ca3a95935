"""Sequences and recurrent models that are run with tf.estimator and with this package: numpy only, for both."""

import numpy as np

RATES = {"Adagrad": 0.05, "Adam": 0.005, "Ftrl": 0.1, "SGD": 0.02}
ROWS, STEPS_OF_SEQUENCE = 32, 5
WORDS = ["a", "b", "c", "d"]


def call(function, **arguments):
    """A column: the name of a function and its arguments."""
    return {"function": function, **arguments}


def embedding(column, dimension=2):
    return call("embedding_column", categorical_column=column, dimension=dimension)


def indicator(column):
    return call("indicator_column", categorical_column=column)


def own(name):
    return {"optimizer": name, "rate": RATES[name]}


PAGES = call("sequence_categorical_column_with_identity", key="pages", num_buckets=6)
TOKENS = call("sequence_categorical_column_with_vocabulary_list", key="tokens", vocabulary_list=WORDS)
TOKENS_HASH = call("sequence_categorical_column_with_hash_bucket", key="tokens", hash_bucket_size=5)
#: Its first word never occurs: only a step without a category, "unknown" or behind the end, touches row 0.
TOKENS_AFTER = call("sequence_categorical_column_with_vocabulary_list", key="tokens", vocabulary_list=["never", *WORDS])
NUMBERS = call("sequence_numeric_column", key="numbers")
AGE = call("numeric_column", key="age")


def table():
    """Sequences as rows of different lengths, one context number, labels."""
    rng = np.random.default_rng(11)
    lengths = rng.integers(1, STEPS_OF_SEQUENCE + 1, ROWS)
    age = np.round(rng.normal(0.0, 1.0, (ROWS, 1)), 2).astype(np.float32)
    pages = [rng.integers(0, 6, length).tolist() for length in lengths]
    return {
        "sequences": {
            "pages": pages,
            "tokens": [rng.choice([*WORDS, "unknown"], length).tolist() for length in lengths],
            "numbers": [np.round(rng.normal(0.0, 1.0, length), 2).tolist() for length in lengths],
        },
        "features": {"age": age},
        "binary": np.array([[int(row[-1] > 2)] for row in pages]),
        "number": np.array([[float(sum(row)) / 10.0] for row in pages], np.float32),
        "each": (rng.integers(0, 2, (ROWS, STEPS_OF_SEQUENCE))),
    }


def dense(rows, missing):
    """Rows filled up."""
    made = np.full((len(rows), STEPS_OF_SEQUENCE), missing, object)
    for place, row in enumerate(rows):
        made[place, : len(row)] = row
    return made


def _case(estimator, labels, columns, **more):
    return {"estimator": estimator, "labels": labels, "arguments": {"sequence_feature_columns": columns, **more}}


def cases():
    """Every cell, stacked and single; columns; a step's logits."""
    context = {"context_feature_columns": [AGE]}
    both = [embedding(PAGES, 3), embedding(TOKENS)]
    made = {
        cell: _case("RNNClassifier", "binary", both, units=[4, 3], cell_type=cell, optimizer=own("Adagrad"), **context)
        for cell in ("simple_rnn", "lstm", "gru")
    }
    made["defaults"] = _case("RNNClassifier", "binary", [indicator(PAGES)], units=[4])
    made["numbers"] = _case("RNNClassifier", "binary", [NUMBERS, embedding(TOKENS_HASH)], units=[4])
    made["adam"] = _case("RNNClassifier", "binary", both, units=[3], cell_type="gru", optimizer=own("Adam"))
    made["regression"] = _case("RNNEstimator", "number", both, units=[4], head="RegressionHead", optimizer=own("SGD"))
    made["each_step"] = _case("RNNClassifier", "each", both, units=[4], return_sequences=True)
    lazy = {"units": [3], "head": "RegressionHead", "optimizer": own("Ftrl")}
    made["row_0"] = _case("RNNEstimator", "number", [embedding(TOKENS_AFTER)], **lazy)
    return made


def same_name(name):
    """The name that a recorded variable has here."""
    for cell in ("simple_rnn", "lstm", "gru"):
        for number, suffix in ((1, "_1"), (0, "")):
            for place in (f"rnn/stacked_rnn_cells/{cell}_cell{suffix}", f"rnn/{cell}_cell{suffix}"):
                name = name.replace(f"rnn_model/{place}/", f"rnn_model/layer_{number}/")
    return name
