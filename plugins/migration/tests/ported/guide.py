"""Ready-made Estimators on an invented ferry passenger list.

The program guide.py of TensorFlow 2.15.1 after `estimator migrate rewrite --write`, with the notes followed by hand.
"""

import os
import tempfile

import keras
import numpy as np

import estimator_canned_tabular as fc
import estimator_core as ec

CABINS = ["deck", "inside", "outside"]
PORTS = ["Arne", "Brill", "Castel"]


def make_passengers(count, seed):
    rng = np.random.RandomState(seed)
    table = {
        "years": rng.gamma(6.0, 6.0, count).clip(1, 90).round(),
        "price": rng.lognormal(3.0, 0.6, count).round(2),
        "party": rng.randint(1, 7, count),
        "cabin": rng.choice(CABINS, count, p=[0.5, 0.3, 0.2]),
        "port": rng.choice(PORTS, count),
        "travels": rng.choice(["work", "leisure"], count),
    }
    score = (
        0.04 * (40 - table["years"])
        + 1.5 * (table["cabin"] == "outside")
        - 1.2 * ((table["cabin"] == "deck") & (table["travels"] == "work"))
        + 0.3 * (table["party"] - 3)
    )
    returned = (score + rng.logistic(size=count) * 0.5 > 0).astype(int)
    return table, returned


def make_input_fn(table, labels=None, epochs=None, shuffle=False, batch_size=32):
    return ec.inputs.numpy_input_fn(
        dict(table), labels, batch_size=batch_size, num_epochs=epochs, shuffle=shuffle, seed=4 if shuffle else None
    )


def build_columns(table):
    price_mean, price_std = table["price"].mean(), table["price"].std()
    years = fc.numeric_column("years")
    price = fc.numeric_column("price", normalizer_fn=lambda x: (x - price_mean) / price_std)
    party = fc.numeric_column("party", dtype=np.int64)
    age_band = fc.bucketized_column(years, boundaries=[12, 18, 30, 45, 60])
    cabin = fc.categorical_column_with_vocabulary_list("cabin", CABINS)
    port = fc.categorical_column_with_vocabulary_list("port", PORTS)
    travels = fc.categorical_column_with_vocabulary_list("travels", ["work", "leisure"], default_value=0)
    crossed = fc.crossed_column(["cabin", "travels"], hash_bucket_size=20, dense_strings=True)
    by_age = fc.crossed_column([age_band, "port"], hash_bucket_size=50, dense_strings=True)

    wide = [age_band, cabin, port, travels, crossed, by_age]
    deep = [
        price,
        party,
        fc.numeric_column("years", normalizer_fn=lambda x: x / 50.0),
        fc.indicator_column(cabin),
        fc.indicator_column(travels),
        fc.embedding_column(port, dimension=2),
        fc.embedding_column(by_age, dimension=4),
    ]
    return wide, deep


def build_estimators(wide, deep, root, dropout=0.1):
    def config(name):
        return ec.RunConfig(
            model_dir=os.path.join(root, name), tf_random_seed=17, save_summary_steps=100, log_step_count_steps=100
        )

    return {
        "linear": fc.LinearClassifier(feature_columns=[*wide, deep[0]], config=config("linear")),
        "deep": fc.DNNClassifier(
            hidden_units=[24, 12],
            feature_columns=deep,
            dropout=dropout,
            optimizer=lambda: fc.choose_optimizer("Adam", 0.005).transformation,
            row_sparse=False,  # Keras' Adam moves every row
            config=config("deep"),
        ),
        "combined": fc.DNNLinearCombinedClassifier(
            linear_feature_columns=wide,
            linear_optimizer="Ftrl",
            dnn_feature_columns=deep,
            dnn_optimizer="Adagrad",
            dnn_hidden_units=[24, 12],
            n_classes=2,
            config=config("combined"),
        ),
    }


def show(title, result):
    keys = [k for k in ("accuracy", "auc", "loss", "global_step") if k in result]
    print(f"{title:<9}", ", ".join(f"{k} {result[k]:.3f}" for k in keys))


def keras_model(dropout=0.1):
    model = keras.Sequential(
        [
            keras.Input((3,), name="numbers"),
            keras.layers.Dense(16, activation="relu", name="body"),
            keras.layers.Dropout(dropout),
            keras.layers.Dense(1, activation="sigmoid", name="returns"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(0.01),
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    return model


def numbers_input(table, labels, epochs):
    values = np.stack([table[n] for n in ("years", "party", "price")], axis=1) / [50.0, 5.0, 30.0]
    target = labels.astype(np.float32)[:, None]
    return ec.inputs.numpy_input_fn(
        {"numbers": values.astype(np.float32)}, target, batch_size=32, num_epochs=epochs, shuffle=False
    )


def keras_route(root, train, train_y, test, test_y):
    """A compiled Keras model behind the Estimator interface."""
    estimator = fc.model_to_estimator(keras_model=keras_model(), model_dir=os.path.join(root, "keras"))
    estimator.train(numbers_input(train, train_y, None), steps=100)
    show("keras", estimator.evaluate(numbers_input(test, test_y, 1)))


def as_example(row):
    example = ec.export.example_class()()
    for name, value in row.items():
        feature = example.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif name == "party":
            feature.int64_list.value.append(value)
        else:
            feature.float_list.value.append(value)
    return example.SerializeToString()


def export_and_serve(estimator, columns, root, rows):
    spec = fc.make_parse_example_spec(columns)
    receiver = ec.export.build_parsing_serving_input_receiver_fn(spec)
    path = estimator.export_saved_model(os.path.join(root, "export"), receiver)
    served = ec.export.load(path)
    records = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    examples = np.array([as_example(r) for r in records], dtype=object)
    outputs = served.signatures["predict"]({"examples": examples})
    print("signatures", sorted(served.signatures))
    return outputs["probabilities"][:, 1]


def main():
    root = tempfile.mkdtemp()
    train, train_y = make_passengers(1500, seed=31)
    test, test_y = make_passengers(400, seed=32)
    wide, deep = build_columns(train)
    train_input = make_input_fn(train, train_y, shuffle=True)
    eval_input = make_input_fn(test, test_y, epochs=1)

    estimators = build_estimators(wide, deep, root)
    for name in sorted(estimators):
        estimators[name].train(train_input, steps=150)
        show(name, estimators[name].evaluate(eval_input))

    combined = estimators["combined"]
    print("weights:", len(combined.get_variable_names()), "variables")
    rows = {name: values[:5] for name, values in test.items()}
    local = [p["probabilities"][1] for p in combined.predict(make_input_fn(rows, epochs=1))]
    served = export_and_serve(combined, wide + deep, root, rows)
    for label, a, b in zip(test_y[:5], local, served, strict=True):
        print(f"label {label}  predicted {a:.3f}  served {b:.3f}")
    keras_route(root, train, train_y, test, test_y)


if __name__ == "__main__":
    main()
