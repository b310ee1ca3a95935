"""Tests of the classifier as a model: the suite, and the effect of each option of fine-tuning."""

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
    LoraConfig,
    Optimization,
    create_optimizer,
    merge_lora,
    read_checkpoint,
    save_pretrained,
)
from estimator_canned_bert.encoder.apply import encode
from estimator_canned_bert.encoder.layers import activation
from estimator_canned_bert.encoder.parameters import encoder_shapes
from estimator_canned_bert.optimization.groups import layer_scales
from estimator_core.errors import ArgumentError, ModelFnError
from estimator_core.testing import ModelSuite

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=12,
    initializer_range=0.2,
).without_dropout()


def examples(count=32, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, 30, size=(count, 10)).astype(np.int32)
    lengths = rng.integers(4, 11, size=count)
    mask = (np.arange(10)[None] < lengths[:, None]).astype(np.int32)
    features = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": np.zeros_like(mask)}
    return features, (ids[:, :4].min(axis=1) < 6).astype(np.int32)


def classifier(place, bert=CONFIG, run=None, **options):
    config = ec.RunConfig(model_dir=str(place), tf_random_seed=4, save_summary_steps=0, **(run or {}))
    return BertClassifier(bert, config=config, **{"learning_rate": 1e-2, "num_labels": 2, **options})


def inputs(count=32, batch_size=8, epochs=None):
    features, labels = examples(count)
    return ec.inputs.numpy_input_fn(features, labels, batch_size=batch_size, num_epochs=epochs, shuffle=False)


class TestBertClassifier(ModelSuite):
    steps = 150

    def make(self, config):
        return BertClassifier(CONFIG, num_labels=2, learning_rate=5e-3, config=config)

    def examples(self, rng):
        return examples(40)


@pytest.fixture
def short():
    return inputs()


@pytest.mark.slow
def test_frozen_layers_do_not_move(tmp_path, short):
    model = classifier(tmp_path, optimization=Optimization(frozen_layers=1)).train(short, steps=1)
    before = dict(model.variables)
    after = model.train(short, steps=2).variables
    moved = {name for name in after if not np.array_equal(after[name], before[name])}
    assert moved
    assert not any("embeddings" in name or "layer_0" in name for name in moved)
    assert {"output_bias", "bert/pooler/dense/kernel", "bert/encoder/layer_1/output/dense/kernel"} <= moved


@pytest.mark.slow
def test_lora_learns_in_the_place_of_the_encoder(tmp_path, short):
    lora = LoraConfig(rank=2)
    model = classifier(tmp_path, lora=lora).train(short, steps=1)
    before = dict(model.variables)
    model.train(short, steps=5)
    after = model.variables
    moved = {name for name in after if not np.array_equal(after[name], before[name])}
    assert moved == {name for name in after if "lora_" in name or name.startswith(("bert/pooler", "output_"))}
    merged = merge_lora(after, lora)
    assert merged.keys() == dict(classifier(tmp_path / "plain").train(short, steps=1).variables).keys()
    features, _ = examples()
    expected = model.predictor()(features)["logits"]
    found = logits_of(merged, features)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def logits_of(variables, features):
    from estimator_canned_bert import encode

    encoded = encode(variables, CONFIG, features["input_ids"], features["input_mask"], features["segment_ids"])
    return encoded.pooled @ variables["output_weights"].T + variables["output_bias"]


@pytest.mark.slow
def test_averaged_weights_are_those_of_the_steps(tmp_path):
    decay, seen = 0.5, []
    model = classifier(tmp_path, optimization=Optimization(ema_decay=decay))
    for _ in range(3):
        model.train(inputs(), steps=1)
        seen.append(model.variables["output_weights"])
    fresh = classifier(tmp_path / "fresh", run={"allow_untrained": True}, optimization=Optimization(ema_decay=decay))
    next(fresh.predict(inputs()))
    starts = [fresh.variables["output_weights"], *seen[:-1]]
    factors = [decay**2, decay, 1.0]
    expected = sum(f * s for f, s in zip(factors, starts, strict=True)) / sum(factors)
    state = model.variables
    np.testing.assert_allclose(state["ema/output_weights"] / state["ema/weight"], expected, rtol=1e-5, atol=1e-7)
    features, _ = examples()
    averaged = {
        name.removeprefix("ema/"): value / state["ema/weight"]
        for name, value in state.items()
        if name.startswith("ema/") and name != "ema/weight"
    }
    np.testing.assert_allclose(model.predictor()(features)["logits"], logits_of(averaged, features), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("lora", [None, LoraConfig(rank=2, alpha=6.0)])
def test_written_weights_are_those_that_are_evaluated(tmp_path, short, lora):
    """A directory of transformers contains the averages and the merged additions. Both change the logits here."""
    model = classifier(tmp_path / "model", lora=lora, optimization=Optimization(ema_decay=0.5)).train(short, steps=3)
    features, _ = examples()
    expected = model.predictor()(features)["logits"]
    variables = model.variables
    save_pretrained(tmp_path / "out", variables if lora is None else merge_lora(variables, lora), CONFIG)
    found = logits_of(read_checkpoint(tmp_path / "out"), features)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    newest = {name: value for name, value in variables.items() if not name.startswith("ema/")}
    plain = logits_of(newest if lora is None else merge_lora(newest, lora), features)
    assert np.abs(plain - expected).max() > 1e-3


@pytest.mark.slow
def test_low_rank_additions_are_not_left_out_of_first_values(tmp_path, short):
    classifier(tmp_path / "lora", lora=LoraConfig(rank=2)).train(short, steps=1)
    other = classifier(tmp_path / "other", init_checkpoint=tmp_path / "lora")
    with pytest.raises(ArgumentError, match="low-rank additions, which cannot be read"):
        other.train(short, steps=1)


@pytest.mark.slow
def test_dropout_is_of_training_alone(tmp_path, short):
    bert = CONFIG.replace(hidden_dropout_prob=0.4, attention_probs_dropout_prob=0.4, num_hidden_layers=1)
    features, labels = examples(8)
    model = classifier(tmp_path, bert=bert, learning_rate=1e-9).train(lambda: [(features, labels)] * 3)
    first, second = (model.predictor()(features)["logits"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    plain = classifier(tmp_path, bert=bert.without_dropout())
    np.testing.assert_allclose(plain.predictor()(features)["logits"], first, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
def test_a_gelu_keeps_its_inputs_alone(name):
    inputs = jnp.linspace(-3, 3, 64)
    outputs, backward = jax.vjp(activation(name), inputs)
    assert [leaf.shape for leaf in jax.tree.leaves(backward) if jnp.size(leaf) > 1] == [inputs.shape]
    plain = lambda x: jax.nn.gelu(x, approximate=name == "gelu_new")  # noqa: E731 - the function itself
    np.testing.assert_array_equal(outputs, plain(inputs))
    np.testing.assert_allclose(backward(jnp.ones(64))[0], jax.vmap(jax.grad(plain))(inputs), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_keeps_its_share_and_the_mean(rate):
    from estimator_canned_bert.encoder.layers import dropout

    found = np.asarray(dropout(jnp.ones((400, 500)), rate, jax.random.key(1)))
    assert set(np.unique(found)) == {0.0, np.float32(1 / (1 - rate))}
    assert abs(np.mean(found == 0) - rate) < 5 * np.sqrt(rate * (1 - rate) / found.size)
    np.testing.assert_array_equal(dropout(jnp.ones(3), rate, None), np.ones(3))


def test_class_weights_are_those_of_cross_entropy():
    logits, labels = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32), np.array([0, 2, 1, 1, 0])
    weights = np.array([1.0, 2.0, 0.5])
    losses = optax.softmax_cross_entropy_with_integer_labels(jnp.asarray(logits), jnp.asarray(labels))
    expected = np.sum(losses * weights[labels]) / np.sum(weights[labels])
    np.testing.assert_allclose(Classification(3, class_weights=weights).loss(logits, labels), expected, rtol=1e-6)
    assert np.isnan(Classification(3).loss(logits, np.array([0, 1, 2, 3, 0]))), "a label out of range must show"


@pytest.mark.slow
def test_padded_rows_do_not_count(tmp_path):
    features, labels = examples(11)
    model = classifier(tmp_path, run={"eval_loss": "example_mean"})
    model.train(inputs(), steps=1)
    whole = model.evaluate(ec.inputs.numpy_input_fn(features, labels, batch_size=11, shuffle=False))
    real = np.repeat(np.arange(16) < 11, 1).astype(np.float32)
    rows = np.minimum(np.arange(16), 10)
    padded = {name: array[rows] for name, array in features.items()} | {"is_real_example": real}
    found = model.evaluate(lambda: [(padded, labels[rows])])
    for name in ("loss", "eval_loss", "eval_accuracy"):
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-5)
    assert len(list(model.predict(lambda: [padded]))) == 11


@pytest.mark.slow
def test_bfloat16_computes_near_float32(tmp_path, short):
    model = classifier(tmp_path).train(short, steps=1)
    half = classifier(tmp_path, compute_dtype="bfloat16")
    features, _ = examples()
    exact, rough = (one.predictor()(features)["probabilities"] for one in (model, half))
    assert rough.dtype == np.float32
    np.testing.assert_allclose(rough, exact, atol=0.03)
    assert not np.array_equal(rough, exact)
    after = half.train(short, steps=1).variables
    assert {value.dtype for value in after.values()} == {np.dtype("float32")}


@pytest.mark.slow
def test_a_head_gives_loss_and_metrics(tmp_path, short):
    class Summed:
        name, logits_dimension = None, 2

        def create_estimator_spec(self, features, mode, logits, labels=None, optimizer=None, **_):
            if mode == ec.ModeKeys.PREDICT:
                return ec.EstimatorSpec(mode, predictions={"total": logits.sum(-1)})
            loss = jnp.mean((logits.sum(-1) - labels) ** 2)
            return ec.EstimatorSpec(mode, loss=loss, train_op=optimizer, eval_metric_ops={"own": ec.metrics.mean(loss)})

    model = classifier(tmp_path, head=Summed(), optimization=Optimization(frozen_layers=2)).train(short, steps=2)
    assert "own" in model.evaluate(inputs(epochs=1))
    assert "total" in next(model.predict(inputs(epochs=1)))


def literal_adam(weights, gradients, rate, options, decays):
    """AdamWeightDecayOptimizer of google-research, for one variable."""
    m = v = np.zeros_like(weights)
    for step, gradient in enumerate(gradients):
        m = options.b1 * m + (1 - options.b1) * gradient
        v = options.b2 * v + (1 - options.b2) * gradient**2
        update = m / (np.sqrt(v) + options.epsilon)
        if decays:
            update = update + options.weight_decay * weights
        weights = weights - rate(step) * update
    return weights


def test_the_optimizer_is_the_original():
    rng = np.random.default_rng(1)
    options = Optimization(clip_norm=None)
    weights = {"a/kernel": rng.normal(size=(3, 2)), "a/bias": rng.normal(size=2), "a/LayerNorm/gamma": np.ones(2)}
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    gradients = [{k: rng.normal(size=v.shape).astype(np.float32) for k, v in weights.items()} for _ in range(6)]

    def rate(step):
        return 0.1 * step / 2 if step < 2 else 0.1 * (1 - step / 6)

    tx = create_optimizer(0.1, 6, 2, options=options)
    state, found = tx.init(weights), weights
    for gradient in gradients:
        updates, state = tx.update(gradient, state, found)
        found = optax.apply_updates(found, updates)
    for name, value in weights.items():
        expected = literal_adam(value, [g[name] for g in gradients], rate, options, decays=name.endswith("kernel"))
        np.testing.assert_allclose(found[name], expected, rtol=2e-5, atol=1e-6, err_msg=name)


def test_gradients_are_clipped_together():
    tx = create_optimizer(1.0, options=Optimization(weight_decay=0.0))
    gradients = {"a": jnp.array([30.0]), "b": jnp.array([40.0])}
    state = tx.init(gradients)
    small = {"a": jnp.array([0.6]), "b": jnp.array([0.8])}
    one, _ = tx.update(gradients, state, gradients)
    other, _ = tx.update(small, state, small)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), one, other)


def test_lower_layers_learn_slower(tmp_path):
    names = ["output_weights", "bert/encoder/layer_1/a", "bert/encoder/layer_0/a", "bert/embeddings/word_embeddings"]
    assert list(layer_scales(names, CONFIG, 0.5).values()) == [1.0, 0.5, 0.25, 0.125]
    albert = CONFIG.replace(architecture="albert", embedding_size=8, num_hidden_groups=2)
    assert layer_scales(["bert/encoder/transformer/group_0/inner_group_0/a"], albert, 0.5) == {
        "bert/encoder/transformer/group_0/inner_group_0/a": 0.25
    }
    tx = create_optimizer(1.0, config=CONFIG, options=Optimization(layer_decay=0.5, weight_decay=0.0))
    weights = {name: jnp.ones(()) for name in names}
    updates, _ = tx.update(weights, tx.init(weights), weights)
    ratios = [float(updates[name] / updates["output_weights"]) for name in names]
    np.testing.assert_allclose(ratios, [1.0, 0.5, 0.25, 0.125], rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_labels": 1}, "at least two classes"),
        ({"class_weights": [1.0]}, "class_weights has 1 entries for 2 classes"),
        ({"compute_dtype": "float16"}, "compute_dtype should be one of"),
        ({"attention": "flash"}, "attention should be"),
        ({"learning_rate": -1}, "learning_rate should be a positive number"),
        ({"optimization": Optimization(frozen="(")}, "frozen is not a regular expression"),
        ({"optimization": Optimization(frozen_layers=3)}, "the encoder has 2 layers"),
        ({"lora": LoraConfig(), "optimization": Optimization(frozen_layers=0)}, "the encoder is frozen already"),
        ({"regression": True, "label_names": ["a", "b"]}, "regression=True has no classes"),
        ({"num_train_steps": 5, "num_warmup_steps": 6}, "num_warmup_steps from 0 to num_train_steps, given: 5 and 6"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(tmp_path, options, message):
    with pytest.raises(ArgumentError, match=message):
        classifier(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_features_that_cannot_be_encoded(tmp_path):
    model = classifier(tmp_path)
    with pytest.raises(ModelFnError, match=r"Cannot use sequence length 13: the encoder has 12 positions"):
        model.train(lambda: [({"input_ids": np.ones((2, 13), np.int32)}, np.zeros(2, np.int32))])
    with pytest.raises(ModelFnError, match=r"The features of BERT are input_ids.*given: \['words'\]"):
        model.train(lambda: [({"words": np.ones((2, 3), np.int32)}, np.zeros(2, np.int32))])


@pytest.mark.parametrize(("feature", "value"), [("ids", -1), ("ids", CONFIG.vocab_size), ("segments", 2)])
def test_a_row_with_a_number_out_of_range_is_nan_and_others_are_as_before(feature, value):
    rng = np.random.default_rng(5)
    parameters = {name: jnp.asarray(rng.normal(0, 0.1, shape)) for name, shape in encoder_shapes(CONFIG).items()}
    features, _ = examples(4)
    arrays = {"ids": features["input_ids"], "mask": features["input_mask"], "segments": features["segment_ids"]}
    arrays["mask"][1, 7:] = 0  # these places have no token

    def pooled(**changed):
        ids, mask, segments = ({**arrays, **changed}[name] for name in ("ids", "mask", "segments"))
        return np.asarray(encode(parameters, CONFIG, ids, mask, segments).pooled)

    before, broken = pooled(), arrays[feature].copy()
    broken[1, 8] = value
    np.testing.assert_array_equal(pooled(**{feature: broken}), before)
    broken[2, 1] = value
    after = pooled(**{feature: broken})
    assert np.isnan(after[2]).all()
    np.testing.assert_array_equal(np.delete(after, 2, axis=0), np.delete(before, 2, axis=0))
