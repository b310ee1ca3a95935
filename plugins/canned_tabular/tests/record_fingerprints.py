"""Records Fingerprint64 of many byte strings, and buckets of crosses, as TensorFlow gives them."""

import itertools

import numpy as np
import tf_tables
from tf_tables import tf

#: A prime near 2^63: the remainder tells the hash but for one of two values.
BUCKETS = 2**63 - 25
KEYS = {"crossed": None, "crossed_with_key": 12345}


def texts():
    """Every length up to 200, and some longer ones."""
    rng = np.random.default_rng(3)
    lengths = itertools.chain(range(201), (255, 256, 257, 511, 1000))
    return [rng.integers(0, 256, length, np.uint8).tobytes() for length in lengths]


def columns():
    rng = np.random.default_rng(4)
    words = ["", "x", "Rome", "a rather long string with more than thirty-two bytes"]
    return {
        "a": rng.choice(words, (12, 2)),
        "b": rng.choice(words, (12, 1)),
        "i": rng.integers(-5, 10**12, (12, 2)),
    }


def main():
    given, values = texts(), columns()
    with tf.compat.v1.Session() as session:
        buckets = session.run(tf.strings.to_hash_bucket_fast(given, BUCKETS))
        crosses = {name: session.run(tf.sparse.to_dense(cross(values, key))) for name, key in KEYS.items()}
    cases = {"texts": [list(text) for text in given], "size": BUCKETS, "buckets": buckets, "columns": values}
    cases |= {name: {"key": KEYS[name], "ids": ids} for name, ids in crosses.items()}
    tf_tables.write(__file__, cases)


def cross(values, key):
    parts = [tf.constant(values[name]) for name in ("a", "b", "i")]
    more = {} if key is None else {"hash_key": key}
    return tf.sparse.cross_hashed(parts, num_buckets=1_000_003, **more)


if __name__ == "__main__":
    main()
