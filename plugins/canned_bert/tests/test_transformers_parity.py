"""Tests of logits, loss, gradients and twenty training steps against recordings of transformers 4 (float32)."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_canned_bert import (
    BertClassifier,
    BertConfig,
    Classification,
    EncoderOptions,
    Optimization,
    Regression,
    encode,
    read_checkpoint,
)
from estimator_canned_bert.weights.names import hugging_face_names
from plugins.canned_bert.tests.directories import foreign_shapes, hugging_face_directory, recorded
from plugins.canned_bert.tests.parity_cases import (
    CASES,
    EPSILON,
    LARGE,
    RATE,
    STEPS,
    WARMUP,
    WEIGHT_DECAY,
    batch,
    config_of,
)

SMALL = [name for name in CASES if name not in LARGE]
PAIRS = ["bert_pairs", "albert_pairs"]
QUICK = [*PAIRS, "bert_regression"]
OTHERS = [name for name in SMALL if name not in PAIRS]
#: Smaller gradients are only rounding. In exact arithmetic, the gradient of the key bias is zero.
GRADIENT_FLOOR = 1e-7


def features(inputs):
    return {"input_ids": inputs["ids"], "input_mask": inputs["mask"], "segment_ids": inputs["segments"]}


def loss_and_logits(parameters, config, case, inputs, options=None):
    encoded = encode(parameters, config, inputs["ids"], inputs["mask"], inputs["segments"], options=options)
    logits = encoded.pooled @ parameters["output_weights"].T + parameters["output_bias"]
    task = Regression() if case["labels"] == 1 else Classification(case["labels"])
    return task.loss(logits, inputs["labels"]), logits


def by_foreign_name(config, values):
    return {
        foreign.name: np.asarray(values[name]).T if foreign.transposed else np.asarray(values[name])
        for name, foreign in hugging_face_names(config).items()
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]
)
def test_logits_and_loss(name, tmp_path):
    directory = hugging_face_directory(name, tmp_path)
    config = BertConfig.from_pretrained(directory)
    loss, logits = loss_and_logits(read_checkpoint(directory), config, CASES[name], batch(CASES[name], 0))
    expected = recorded(name)
    np.testing.assert_allclose(logits, expected["logits"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(loss, expected["loss"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_every_tensor_is_known_by_its_name(name):
    assert {key.removeprefix("gradient/") for key in recorded(name) if key.startswith("gradient/")} == set(
        foreign_shapes(name)
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bert_pairs", EncoderOptions()),
        pytest.param("albert_pairs", EncoderOptions(), marks=pytest.mark.slow),
        *(pytest.param(name, EncoderOptions(), marks=pytest.mark.slow) for name in OTHERS),
        pytest.param("bert_pairs", EncoderOptions(remat=True), marks=pytest.mark.slow),
        pytest.param("bert_pairs", EncoderOptions(scan_layers=True), marks=pytest.mark.slow),
        pytest.param("albert_pairs", EncoderOptions(remat=True, scan_layers=True), marks=pytest.mark.slow),
    ],
    ids=[
        *PAIRS,
        *OTHERS,
        "bert_pairs-remat",
        "bert_pairs-scan",
        "albert_pairs-remat-scan",
    ],
)
def test_gradients(name, options, tmp_path):
    directory = hugging_face_directory(name, tmp_path)
    config, case = BertConfig.from_pretrained(directory), CASES[name]

    @jax.jit
    def gradient(parameters):
        return jax.grad(lambda values: loss_and_logits(values, config, case, batch(case, 0), options)[0])(parameters)

    found = by_foreign_name(config, gradient({k: jnp.asarray(v) for k, v in read_checkpoint(directory).items()}))
    expected = recorded(name)
    for key, value in found.items():
        reference = expected[f"gradient/{key}"]
        bound = 1e-4 * np.abs(reference).max() + GRADIENT_FLOOR
        assert np.abs(value - reference).max() <= bound, key


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_twenty_steps_of_training(name, tmp_path):
    """The Estimator trains with AdamW, with bias correction and epsilon 1e-6, from the safetensors file."""
    directory = hugging_face_directory(name, tmp_path / "pretrained")
    case = CASES[name]
    warm = optax.linear_schedule(0.0, RATE, WARMUP)
    schedule = optax.join_schedules([warm, optax.linear_schedule(RATE, 0.0, STEPS - WARMUP)], [WARMUP])
    classifier = BertClassifier(
        BertConfig.from_dict(config_of(case)),
        num_labels=case["labels"],
        regression=case["labels"] == 1,
        init_checkpoint=directory,
        learning_rate=schedule,
        optimization=Optimization(bias_correction=True, epsilon=EPSILON, weight_decay=WEIGHT_DECAY),
        config=ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=3, save_summary_steps=0),
    )
    batches = [(features(inputs), inputs["labels"]) for inputs in (batch(case, step) for step in range(STEPS))]
    classifier.train(lambda: batches)
    after = by_foreign_name(classifier.bert_config, classifier.variables)
    expected = recorded(name)
    moved = 0.0
    for key, value in after.items():
        np.testing.assert_allclose(value, expected[f"after/{key}"], rtol=0, atol=1e-4, err_msg=key)
        moved = max(moved, np.abs(value - read_foreign(directory)[key]).max())
    assert moved > 5e-3, "training moved nothing, so the comparison shows nothing"


def read_foreign(directory):
    from safetensors.numpy import load_file

    return load_file(directory / "model.safetensors")
