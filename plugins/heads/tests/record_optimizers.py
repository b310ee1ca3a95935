"""Records Adagrad and Ftrl of Keras (legacy, as the canned estimators used them) on given gradients, step by step."""

import numpy as np
import tf_heads
from tf_heads import tf

ADAGRAD = tf.keras.optimizers.legacy.Adagrad
FTRL = tf.keras.optimizers.legacy.Ftrl


def steps(make, arguments, start, gradients):
    """The variable's value after each gradient."""
    optimizer, variable, values = make(**arguments), tf.Variable(np.float32(start)), []
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(np.float32(gradient)), variable)])
        values.append(variable.numpy())
    return values


CONSTANT = [2.0, 2.0, 2.0]
NAMED = {
    "33_adagrad_0.05": ("Adagrad", {"learning_rate": 0.05}, [1.0, 0.0]),
    "34_adagrad_0.001": ("Adagrad", {"learning_rate": 0.001}, [1.0]),
    "35_ftrl_0.2": ("Ftrl", {"learning_rate": 0.2}, [1.0, 0.0]),
    "36_ftrl_0.1_l1": ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.5}, [0.0, 1.0]),
}


def random_case(rng, kind):
    shape = (int(rng.integers(1, 5)),)
    arguments = {"learning_rate": round(float(rng.uniform(0.001, 0.5)), 4)}
    if rng.random() < 0.5:
        arguments["initial_accumulator_value"] = round(float(rng.uniform(0.05, 1.0)), 3)
    if kind == "Ftrl":
        for name, high in (
            ("l1_regularization_strength", 1.0),
            ("l2_regularization_strength", 1.0),
            ("l2_shrinkage_regularization_strength", 0.5),
            ("beta", 1.0),
        ):
            if rng.random() < 0.4:
                arguments[name] = round(float(rng.uniform(0.01, high)), 3)
        if rng.random() < 0.3:
            arguments["learning_rate_power"] = round(float(rng.uniform(-1.0, -0.1)), 2)
    start = np.round(rng.normal(0, 1, shape), 3) * (rng.random() < 0.7)
    gradients = np.round(rng.normal(0, 2, (int(rng.integers(1, 8)), *shape)), 3)
    gradients[rng.random(gradients.shape) < 0.1] = 0.0
    return arguments, start, gradients


def main():
    makers, cases = {"Adagrad": ADAGRAD, "Ftrl": FTRL}, {}
    for name, (kind, arguments, start) in NAMED.items():
        gradients = [[gradient] * len(start) for gradient in CONSTANT]
        cases[name] = (kind, arguments, start, gradients)
    rng = np.random.default_rng(tf_heads.SEED)
    for kind, count in (("Adagrad", 20), ("Ftrl", 60)):
        for index in range(count):
            cases[f"{kind.lower()}_{index:02}"] = (kind, *random_case(rng, kind))
    made = {
        name: {
            "optimizer": kind,
            "arguments": arguments,
            "start": np.asarray(start),
            "gradients": np.asarray(gradients),
            "values": steps(makers[kind], arguments, start, gradients),
        }
        for name, (kind, arguments, start, gradients) in cases.items()
    }
    tf_heads.write(__file__, made)


if __name__ == "__main__":
    main()
