"""Random models for both sides: empty rows, unknown words, crosses and stateful optimizers together. numpy only.

Batches are small, so that many have an empty row and no look-up of row 0.
"""

import numpy as np

ROWS, BATCH, STEPS, CASES = 24, 3, 40, 10
WORDS, OTHERS, PORTS = ["red", "green", "blue"], ["rust", "teal"], ["Rome", "Oslo", "Lima"]
OPTIMIZERS = {
    "Momentum": {"rate": 0.02, "momentum": 0.8},
    "Nesterov": {"rate": 0.02, "momentum": 0.8},
    "Ftrl": {"rate": 0.1, "shrinkage": 0.3},
    "RMSProp": {"rate": 0.003, "momentum": 0.5},
    "Adagrad": {"rate": 0.05},
}


def call(function, **arguments):
    return {"function": function, **arguments}


def table(seed):
    """Features and labels; about a third of the rows have no word, or no code, at all."""
    rng = np.random.default_rng([seed, 1])
    words = rng.choice([*WORDS, *OTHERS, ""], (ROWS, 3))
    words[rng.random(ROWS) < 0.3] = ""
    port = rng.choice([*PORTS, "Nowhere", ""], ROWS)
    code = rng.integers(-1, 5, (ROWS, 2))
    code[rng.random(ROWS) < 0.3] = -1
    age = np.round(rng.normal(30.0, 12.0, (ROWS, 1)), 2).astype(np.float32)
    score = (words == "red").sum(1) - (port == "Rome") + (age[:, 0] > 30)
    features = {"words": words, "port": port, "code": code, "age": age}
    return features, (score + rng.normal(0, 0.5, ROWS) > 0.7).astype(np.int64)[:, None]


def columns(seed):
    """Categorical columns of a case, in which the first place of every table is a word as any other."""
    rng = np.random.default_rng([seed, 2])
    words = call("categorical_column_with_vocabulary_list", key="words", vocabulary_list=WORDS)
    port = call("categorical_column_with_vocabulary_list", key="port", vocabulary_list=PORTS)
    code = call("categorical_column_with_identity", key="code", num_buckets=5)
    age = call("numeric_column", key="age")
    buckets = call("bucketized_column", source_column=age, boundaries=[20.0, 30.0, 40.0])
    keys = [[[words, code], ["port", buckets], [port, buckets]][rng.integers(3)]]
    keys += [[[words, port], ["port", words]][rng.integers(2)]]
    crosses = [
        call("crossed_column", keys=parts, hash_bucket_size=int(rng.integers(5, 12)), hash_key=int(hash_key))
        for parts, hash_key in zip(keys, rng.permutation([0, 7]), strict=True)
    ]
    return [words, code, *crosses], buckets


def case(seed):
    """An estimator, its columns and its optimizer."""
    rng = np.random.default_rng([seed, 3])
    found, buckets = columns(seed)
    kind = ["Linear", "DNN", "DNNLinearCombined"][seed % 3]
    combiner = str(rng.choice(["sum", "mean", "sqrtn"]))
    deep = [buckets] + [
        call("embedding_column", categorical_column=column, dimension=2, combiner=combiner) for column in found
    ]
    name = list(OPTIMIZERS)[seed % len(OPTIMIZERS)]
    made = {"estimator": f"{kind}Classifier", "parsed": bool(seed % 2), "optimizer": {"kind": name, **OPTIMIZERS[name]}}
    if kind == "Linear":
        return {**made, "columns": {"feature_columns": found}, "options": {"sparse_combiner": combiner}}
    if kind == "DNN":
        return {**made, "columns": {"feature_columns": deep}, "options": {"hidden_units": [3]}}
    both = {"linear_feature_columns": found, "dnn_feature_columns": deep}
    return {**made, "columns": both, "options": {"dnn_hidden_units": [3], "linear_sparse_combiner": combiner}}


def cases():
    """Every case by name."""
    return {f"{seed}-{case(seed)['estimator']}-{case(seed)['optimizer']['kind']}": case(seed) for seed in range(CASES)}


def seed_of(name):
    return int(name.split("-")[0])


def build(specs, functions, **of_crosses):
    """Columns of a library from their specifications; a cross gets the arguments of the library's own."""
    if isinstance(specs, list):
        return [build(spec, functions, **of_crosses) for spec in specs]
    if not isinstance(specs, dict):
        return specs
    arguments = {name: build(value, functions, **of_crosses) for name, value in specs.items() if name != "function"}
    more = of_crosses if specs["function"] == "crossed_column" else {}
    return getattr(functions, specs["function"])(**arguments, **more)
