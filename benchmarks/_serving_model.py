"""The export that the serving benchmark serves: a transformer of BERT-tiny's size with random weights."""

import jax
import jax.numpy as jnp
import numpy as np

TOKENS = 32
VOCABULARY, WIDTH, HEADS, LAYERS, CLASSES = 30522, 128, 2, 2, 2


def make_export(directory):
    """Writes the export, and returns its path."""
    from estimator_core.export import ExportRequest, Feature, SignatureSpec, new_export
    from estimator_exporters.stablehlo import StableHLOFormat

    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={"ids": Feature((None, TOKENS), "int32")},
        outputs={"probabilities": Feature((None, CLASSES))},
        function=lambda variables, inputs: {"probabilities": classify(variables, inputs["ids"])},
    )
    request = ExportRequest(signatures={"serving_default": signature}, variables=random_variables())
    with new_export(directory) as (temporary, final):
        StableHLOFormat().write(request, temporary)
    return str(final[0])


def random_variables():
    """Returns weights by path."""
    generator = np.random.default_rng(0)
    shapes = {"tokens": (VOCABULARY, WIDTH), "positions": (TOKENS, WIDTH), "classes": (WIDTH, CLASSES)}
    for layer in range(LAYERS):
        shapes |= {f"{layer}/qkv": (WIDTH, 3 * WIDTH), f"{layer}/out": (WIDTH, WIDTH)}
        shapes |= {f"{layer}/up": (WIDTH, 4 * WIDTH), f"{layer}/down": (4 * WIDTH, WIDTH)}
    return {name: (generator.normal(size=shape) / np.sqrt(WIDTH)).astype(np.float32) for name, shape in shapes.items()}


def classify(variables, ids):
    """Returns probabilities of the classes for rows of token ids."""
    x = normalized(variables["tokens"][ids] + variables["positions"])
    for layer in range(LAYERS):
        x = normalized(x + attention(x @ variables[f"{layer}/qkv"]) @ variables[f"{layer}/out"])
        x = normalized(x + jax.nn.gelu(x @ variables[f"{layer}/up"], approximate=False) @ variables[f"{layer}/down"])
    return jax.nn.softmax(jnp.tanh(x[:, 0]) @ variables["classes"])


def attention(qkv):
    """Returns the self-attention of several heads."""
    q, k, v = (part.reshape(*part.shape[:2], HEADS, -1) for part in jnp.split(qkv, 3, axis=-1))
    return jax.nn.dot_product_attention(q, k, v).reshape(*qkv.shape[:2], WIDTH)


def normalized(x):
    """Returns the layer normalization, without scale and offset."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
