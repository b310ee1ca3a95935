"""Tests of `BertModel`: the encoder in a user's own model_fn."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_canned_bert import (
    BertClassifier,
    BertConfig,
    BertModel,
    EncoderOptions,
    encode,
    init_from_pretrained,
    save_pretrained,
)
from estimator_core.errors import ArgumentError

SHAPE = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=12,
    initializer_range=0.2,
)
RNG = np.random.default_rng(0)
IDS = RNG.integers(1, 30, size=(6, 8)).astype(np.int32)
MASK = (np.arange(8) < RNG.integers(3, 9, size=6)[:, None]).astype(np.int32)
TYPES = (np.arange(8) > 4).astype(np.int32) * np.ones((6, 1), np.int32)
ROWS = {"input_ids": IDS, "input_mask": MASK, "token_type_ids": TYPES}


def predictions_of(tmp_path, call, config=None, warm=None):
    """The predictions of a model_fn that returns all outputs of the encoder.

    It trains for one step at rate 0, which changes nothing. Returns the estimator and the predictions.
    """

    def model_fn(features, labels, mode):
        bert = call(features, mode == ec.ModeKeys.TRAIN)
        if warm is not None:
            init_from_pretrained(warm)
        outputs = {
            "sequence": bert.get_sequence_output(),
            "pooled": bert.get_pooled_output(),
            "layers": jnp.stack(bert.get_all_encoder_layers(), axis=1),
            "shared": bert.get_sequence_output() @ bert.get_embedding_table().T,
        }
        loss = jnp.mean(bert.pooled_output**2)
        return ec.EstimatorSpec(mode, predictions=outputs, loss=loss, train_op=optax.sgd(0.0))

    rows = ec.inputs.numpy_input_fn(ROWS, batch_size=6, shuffle=False, num_epochs=1)
    estimator = ec.Estimator(model_fn, str(tmp_path), config or ec.RunConfig(tf_random_seed=3))
    estimator.train(rows, steps=1)
    (found,) = estimator.predict(rows, yield_single_examples=False)
    return estimator, found


@pytest.mark.slow
def test_it_is_the_encoder_with_the_variables_of_the_original(tmp_path):
    estimator, found = predictions_of(
        tmp_path, lambda f, training: BertModel(SHAPE, training, f["input_ids"], f["input_mask"], f["token_type_ids"])
    )
    variables = estimator.variables
    assert "bert/encoder/layer_1/attention/self/query/kernel" in variables
    expected = encode(variables, SHAPE, IDS, MASK, TYPES)
    np.testing.assert_allclose(found["sequence"], expected.sequence, atol=1e-5)
    np.testing.assert_allclose(found["pooled"], expected.pooled, atol=1e-5)
    assert found["layers"].shape == (6, 2, 8, 16)
    np.testing.assert_array_equal(found["layers"][:, -1], found["sequence"])
    assert not np.allclose(found["layers"][:, 0], found["sequence"])
    assert found["shared"].shape == (6, 8, 30)


@pytest.mark.slow
def test_mask_and_types_may_be_left_out(tmp_path):
    estimator, found = predictions_of(tmp_path, lambda f, training: BertModel(SHAPE, training, f["input_ids"]))
    expected = encode(estimator.variables, SHAPE, IDS, np.ones_like(IDS), np.zeros_like(IDS))
    np.testing.assert_allclose(found["pooled"], expected.pooled, atol=1e-5)


@pytest.mark.slow
def test_layers_in_a_scan_are_the_same_layers(tmp_path):
    one, plain = predictions_of(tmp_path / "one", lambda f, training: BertModel(SHAPE, training, f["input_ids"]))
    _, scanned = predictions_of(
        tmp_path / "two",
        lambda f, training: BertModel(SHAPE, training, f["input_ids"], options=EncoderOptions(scan_layers=True)),
    )
    np.testing.assert_allclose(plain["layers"], scanned["layers"], atol=1e-5)
    assert set(one.variables) >= {"bert/pooler/dense/kernel"}


@pytest.mark.slow
def test_values_are_dropped_in_training_alone(tmp_path):
    losses = []

    class Losses(ec.Hook):
        def next_step(self, step):
            return step + 1

        def after_step(self, run, step, out):
            losses.append(float(out["loss"]))

    def pooled(training):
        def model_fn(features, labels, mode):
            bert = BertModel(SHAPE, training and mode == ec.ModeKeys.TRAIN, features["input_ids"])
            if mode != ec.ModeKeys.TRAIN:
                return ec.EstimatorSpec(mode, predictions={"pooled": bert.pooled_output})
            return ec.EstimatorSpec(mode, loss=jnp.sum(bert.pooled_output), train_op=optax.sgd(0.0))

        rows = ec.inputs.numpy_input_fn({"input_ids": IDS}, batch_size=6, shuffle=False, num_epochs=1)
        estimator = ec.Estimator(model_fn, str(tmp_path / str(training)), ec.RunConfig(tf_random_seed=3))
        estimator.train(rows, hooks=[Losses()], steps=1)
        (predicted,) = estimator.predict(rows, yield_single_examples=False)
        return losses[-1], float(np.sum(predicted["pooled"]))

    (dropped, after_dropped), (whole, after_whole) = pooled(True), pooled(False)
    assert whole == pytest.approx(after_whole, abs=1e-4)
    assert abs(dropped - whole) > 1e-2
    assert after_dropped == pytest.approx(after_whole, abs=1e-4)


@pytest.mark.slow
def test_pretrained_weights_fill_it(tmp_path):
    rows = {"input_ids": IDS, "input_mask": MASK, "segment_ids": TYPES}
    source = BertClassifier(SHAPE, model_dir=str(tmp_path / "source"), config=ec.RunConfig(tf_random_seed=9))
    source.train(ec.inputs.numpy_input_fn(rows, np.zeros(6, np.int32), batch_size=6, shuffle=False), steps=1)
    save_pretrained(tmp_path / "weights", source.variables, SHAPE)
    estimator, _ = predictions_of(
        tmp_path / "other",
        lambda f, training: BertModel(SHAPE, training, f["input_ids"]),
        warm=tmp_path / "weights",
    )
    name = "bert/embeddings/word_embeddings"
    np.testing.assert_array_equal(estimator.get_variable_value(name), source.get_variable_value(name))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            (IDS.astype(np.float32),),
            r"input_ids must be whole numbers of shape \[batch, length\]; given float32\[6, 8\]",
        ),
        ((IDS[0],), r"input_ids must be whole numbers of shape \[batch, length\]; given int32\[8\]"),
        ((IDS, MASK[:, :4]), r"input_mask must be whole numbers of shape \[6, 8\], as input_ids; given int32\[6, 4"),
        ((IDS, MASK, TYPES[:3]), r"token_type_ids must be whole numbers of shape \[6, 8\], as input_ids"),
        ((np.ones((2, 13), np.int32),), "input_ids have 13 tokens a row; this encoder has 12 positions"),
    ],
)
def test_ids_that_cannot_be_used_are_refused(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        BertModel(SHAPE, False, *arguments)
