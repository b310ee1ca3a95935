"""Keras 3 on JAX with its FeatureSpace in a separate process, for `file_to_model.py`. tf.data reads the files.

python _ads_keras.py csv|tfrecord train=FILE held_out=FILE rows=N result=FILE

FeatureSpace needs tensorflow for texts. It runs inside tf.data, as its guide recommends. The weights of the linear part
are embeddings of width 1, because one-hot rows of 10,000 numbers would be slower.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import _ads
import keras
import tensorflow as tf
from keras.utils import FeatureSpace


def dataset(kind, path):
    """Returns one pass in the order of the file."""
    if kind == "csv":
        return tf.data.experimental.make_csv_dataset(
            path, _ads.BATCH, label_name="label", num_epochs=1, shuffle=False, num_parallel_reads=1
        )
    spec = {name: tf.io.FixedLenFeature((), tf.float32) for name in _ads.NUMBERS}
    spec.update({name: tf.io.FixedLenFeature((), tf.int64) for name in ("age", "label")})
    spec.update({name: tf.io.FixedLenFeature((), tf.string) for name in ("site", "device", "user")})
    return tf.data.experimental.make_batched_features_dataset(
        path, _ads.BATCH, spec, label_key="label", num_epochs=1, shuffle=False
    )


class Ages(keras.layers.Discretization):
    """A layer with fixed boundaries. FeatureSpace calls `adapt` of each layer that has it, and the original raises."""

    def __init__(self):
        super().__init__(bin_boundaries=[float(age) for age in _ads.AGES])

    def adapt(self, data, steps=None):
        """Does nothing, because there is nothing to learn."""


def words():
    """Returns the data from which FeatureSpace learns the vocabularies: the same words as for the other contestants."""
    sites, ages = list(_ads.SITES), {"age": [0.0] * len(_ads.SITES)}
    return {"site": sites, "device": [_ads.DEVICES[index % len(_ads.DEVICES)] for index in range(len(sites))], **ages}


def space():
    """Returns the FeatureSpace, which makes ids of everything that is not a number."""
    features = {name: FeatureSpace.float() for name in _ads.NUMBERS}
    features["age"] = FeatureSpace.feature("float32", Ages(), "int")
    features["site"] = FeatureSpace.string_categorical(output_mode="int")
    features["device"] = FeatureSpace.string_categorical(output_mode="int")
    features["user"] = FeatureSpace.string_hashed(_ads.USER_BUCKETS, output_mode="int")
    cross = FeatureSpace.cross(("site", "device"), _ads.CROSS_BUCKETS, output_mode="int")
    return FeatureSpace(features, crosses=[cross], output_mode="dict")


def model_of(encoded):
    """Returns the wide-and-deep model."""
    embed = lambda name, size, width: keras.layers.Flatten()(  # noqa: E731
        keras.layers.Embedding(size, width, embeddings_initializer="zeros" if width == 1 else "uniform")(encoded[name])
    )
    sizes = {"age": len(_ads.AGES) + 1, "site": len(_ads.SITES) + 1, "user": _ads.USER_BUCKETS}
    sizes["site_X_device"] = _ads.CROSS_BUCKETS
    wide = [embed(name, size, 1) for name, size in sizes.items()]
    device = keras.layers.CategoryEncoding(len(_ads.DEVICES) + 1, output_mode="one_hot")(encoded["device"])
    deep = [encoded[name] for name in _ads.NUMBERS]
    deep += [embed("site", sizes["site"], _ads.SITE_WIDTH), embed("user", sizes["user"], _ads.USER_WIDTH), device]
    x = keras.layers.Concatenate()(deep)
    for width in _ads.HIDDEN:
        x = keras.layers.Dense(width, activation="relu")(x)
    model = keras.Model(encoded, keras.layers.Add()([*wide, keras.layers.Dense(1)(x)]))
    optimizer = keras.optimizers.Adagrad(_ads.RATE, initial_accumulator_value=0.1)
    model.compile(optimizer, keras.losses.BinaryCrossentropy(from_logits=True))
    return model


class Later(keras.callbacks.Callback):
    """Records the start of the later part."""

    def __init__(self, noted, step):
        super().__init__()
        self._noted, self._step = noted, step

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self._step:
            self._noted.later()


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kind, given = sys.argv[1], dict(item.split("=", 1) for item in sys.argv[2:])
    rows = int(given["rows"])
    for _ in sys.stdin:
        keras.utils.set_random_seed(1)
        noted = _ads.Pass()
        made = space()
        data = dataset(kind, given["train"])
        made.adapt(words())
        model = model_of(made.get_encoded_features())

        def ready(features, label, made=made):
            return made(features), label

        data = data.map(ready, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        model.fit(data, epochs=1, verbose=0, callbacks=[Later(noted, _ads.later_step(rows))])
        figures = noted.end(rows)
        held_out = dataset(kind, given["held_out"]).map(ready)
        _ads.answer(given["result"], figures, lambda model=model, data=held_out: float(model.evaluate(data, verbose=0)))
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
