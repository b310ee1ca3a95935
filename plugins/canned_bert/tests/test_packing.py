"""Tests of several sentences per row: their places, and results that equal those of one sentence per row."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estimator_core as ec
from estimator_canned_bert import (
    BertClassifier,
    BertConfig,
    Classification,
    ClassifierData,
    EncoderOptions,
    Regression,
    encode,
    encoder_shapes,
)
from estimator_canned_bert.features import read_features
from estimator_canned_bert.text.encoded import EncodedExamples
from estimator_canned_bert.text.packing import RowShape, first_fit, packed_features, row_shapes
from estimator_core.errors import ArgumentError, ModelFnError
from estimator_core.inputs import open_input

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
LONGEST = 24
BERT = BertConfig(
    vocab_size=15,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=LONGEST,
    initializer_range=0.2,
).without_dropout()
ALBERT = BERT.replace(architecture="albert", embedding_size=8)


def encoded_examples(count, seed=0, longest=LONGEST):
    """Pairs of 3 to `longest` tokens. The first one is the longest."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, longest // 2 + 1, size=count)
    lengths[0] = longest
    return EncodedExamples(
        tokens=rng.integers(1, 15, size=lengths.sum()).astype(np.int32),
        ends=np.concatenate([[0], np.cumsum(lengths)]),
        first=rng.integers(1, lengths + 1).astype(np.int32),
        labels=rng.integers(0, 3, size=count).astype(np.int32),
        pad_id=0,
        key="test",
    )


def both_layouts(examples):
    """All examples as one batch: one sentence per row, and packed."""
    chosen = np.arange(len(examples))
    longest = int(examples.lengths.max())
    shapes = row_shapes([examples.lengths], len(examples), longest, None)
    assert shapes[0].rows < len(examples), "nothing is packed, so the comparison shows nothing"
    return examples.features(chosen, longest), packed_features(examples, chosen, shapes)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=50),
    batch_size=st.integers(1, 60),
    rows=st.one_of(st.none(), st.integers(1, 20)),
)
def test_every_sentence_lies_whole_in_one_row(lengths, batch_size, rows):
    sizes = np.array(lengths[:batch_size])
    shapes = row_shapes([sizes], batch_size, int(sizes.max()), rows)
    assert len(shapes) <= 2
    for shape in shapes:
        assert shape.rows * shape.length <= shape.batch_size * shape.depth * shape.width
        assert shape.length >= sizes.max()
    places, count = first_fit(sizes, shapes[0].length)
    assert min(shape.rows for shape in shapes if shape.rows >= count) <= shapes[-1].rows
    covered = [list(range(place, place + size)) for place, size in zip(places.tolist(), sizes.tolist(), strict=True)]
    flat = list(itertools.chain(*covered))
    assert len(set(flat)) == len(flat)
    for tokens in covered:
        assert tokens[0] // shapes[0].length == tokens[-1] // shapes[0].length < count


def test_the_number_of_rows_is_the_one_with_the_least_work():
    batches = [np.full(32, 32)] * 9 + [np.full(32, 64)]
    assert [shape.rows for shape in row_shapes(batches, 32, 128, None)] == [8, 32]
    assert [shape.rows for shape in row_shapes([np.full(32, 32), np.full(32, 40)], 32, 128, None)] == [11, 32]
    assert [shape.rows for shape in row_shapes(batches, 32, 128, 20)] == [20, 32]
    assert [shape.rows for shape in row_shapes([np.full(32, 128)], 32, 128, None)] == [32]


def test_features_say_where_every_sentence_is():
    examples = encoded_examples(12)
    plain, packed = both_layouts(examples)
    text = read_features({name: jnp.asarray(value) for name, value in packed.items()}, BERT)
    ids, mask, segments = (np.asarray(array).reshape(-1) for array in text[:3])
    for row, place in enumerate(np.asarray(text.first_tokens)):
        size = examples.lengths[row]
        np.testing.assert_array_equal(ids[place : place + size], plain["input_ids"][row, :size])
        np.testing.assert_array_equal(segments[place : place + size], plain["segment_ids"][row, :size])
        assert len(set(mask[place : place + size])) == 1
    assert (mask > 0).sum() == examples.lengths.sum()
    for row in np.asarray(text.mask):
        numbers = set(row.tolist()) - {0}
        assert numbers == set(range(1, len(numbers) + 1))


def parameters_of(config, outputs, seed=0):
    rng = np.random.default_rng(seed)
    shapes = encoder_shapes(config) | {"output_weights": (outputs, config.hidden_size), "output_bias": (outputs,)}
    return {name: jnp.asarray(0.3 * rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}


def loss_of(parameters, config, task, features, labels, options=None, key=None):
    text = read_features({name: jnp.asarray(value) for name, value in features.items()}, config)
    encoded = encode(parameters, config, *text[:3], first_tokens=text.first_tokens, options=options, key=key)
    logits = encoded.pooled @ parameters["output_weights"].T + parameters["output_bias"]
    return task.loss(logits, labels), logits


@pytest.mark.parametrize(
    ("config", "task", "options"),
    [
        (BERT, Classification(3, class_weights=[1.0, 2.0, 0.5]), EncoderOptions()),
        pytest.param(ALBERT, Regression(), EncoderOptions(scan_layers=True, remat=True), marks=pytest.mark.slow),
    ],
    ids=["classes", "albert-numbers-scan-remat"],
)
def test_loss_logits_and_gradients_are_those_of_a_sentence_a_row(config, task, options):
    examples = encoded_examples(14)
    parameters = parameters_of(config, task.outputs)

    @jax.jit
    def computed(parameters, features):
        (loss, logits), gradient = jax.value_and_grad(loss_of, has_aux=True)(
            parameters, config, task, features, examples.labels, options
        )
        return loss, logits, gradient

    (loss, logits, gradient), (loss_packed, logits_packed, gradient_packed) = (
        computed(parameters, features) for features in both_layouts(examples)
    )
    np.testing.assert_allclose(loss_packed, loss, rtol=0, atol=1e-6)
    np.testing.assert_allclose(logits_packed, logits, rtol=0, atol=1e-6)
    for name, value in gradient.items():
        bound = 1e-6 * max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(gradient_packed[name], value, rtol=0, atol=bound, err_msg=name)


@pytest.mark.parametrize("dropped", [False, True])
def test_sentences_of_a_row_see_nothing_of_each_other(dropped):
    config = BERT.replace(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3) if dropped else BERT
    examples = encoded_examples(14)
    _, packed = both_layouts(examples)
    parameters = parameters_of(config, 3)
    computed = jax.jit(
        lambda features: loss_of(
            parameters, config, Classification(3), features, examples.labels, key=jax.random.key(5)
        )[1]
    )
    before = computed(packed)
    other = dict(packed, input_ids=packed["input_ids"].copy())
    flat, place = other["input_ids"].reshape(-1), packed["first_tokens"][3]
    flat[place : place + examples.lengths[3]] = 14
    changed = np.flatnonzero(np.any(np.asarray(computed(other)) != np.asarray(before), axis=-1))
    assert changed.tolist() == [3]


@pytest.mark.parametrize("packed", [False, True])
def test_cudnn_gets_a_mask_of_queries_and_keys_that_heads_share(monkeypatch, packed):
    # Without a GPU, this checks the arguments for cuDNN. cuDNN raises if the third axis is not the length.
    given = []

    def fused(query, key, value, *, mask, implementation):
        given.append((implementation, mask.shape, query.shape))
        return query

    monkeypatch.setattr(jax.nn, "dot_product_attention", fused)
    features = both_layouts(encoded_examples(14))[packed]
    options = EncoderOptions(attention="cudnn")
    jax.eval_shape(
        lambda: loss_of(parameters_of(BERT, 3), BERT, Classification(3), features, np.zeros(14, np.int32), options)
    )
    for implementation, mask, (rows, length, heads, _) in given:
        assert (implementation, mask) == ("cudnn", (rows, 1, length, length))
        assert heads > 1
    assert len(given) == BERT.num_hidden_layers


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    rng = np.random.default_rng(2)

    def line(number):
        words = rng.choice(WORDS, size=rng.integers(2, 7)).tolist()
        return f"{('no', 'yes')[number % 2]}\t{' '.join(words[:-1])}\t{words[-1]}\n"

    (folder / "train.tsv").write_text("".join(line(n) for n in range(37)))
    (folder / "dev.tsv").write_text("".join(line(n) for n in range(21)))
    return ClassifierData(folder, vocab=folder, max_seq_length=LONGEST)


def classifier(data, place, bert=BERT, **run):
    config = ec.RunConfig(model_dir=str(place), tf_random_seed=4, save_summary_steps=0, **run)
    return BertClassifier(bert, num_labels=2, label_names=data.labels, learning_rate=1e-3, config=config)


@pytest.mark.slow
def test_training_evaluation_and_predictions_are_those_of_a_sentence_a_row(data, tmp_path):
    # Dropout before the output layer is drawn per example, so it is the same. The last batches are partial.
    bert = BERT.replace(classifier_dropout=0.3)
    found = {}
    for pack in (False, True):
        model = classifier(data, tmp_path / str(pack), bert, eval_loss="example_mean")
        model.train(data.train.input_fn(8, shuffle=True, pack=pack), steps=6)
        metrics = model.evaluate(data.dev.input_fn(8, pack=pack))
        rows = list(model.predict(data.dev.input_fn(8, pack=pack)))
        found[pack] = model.variables, metrics, np.array([row["logits"] for row in rows])
    (weights, metrics, logits), (weights_packed, metrics_packed, logits_packed) = found[False], found[True]
    assert len(logits) == len(logits_packed) == 21
    np.testing.assert_allclose(logits_packed, logits, rtol=0, atol=1e-5)
    for name in ("loss", "eval_loss", "eval_accuracy"):
        np.testing.assert_allclose(metrics_packed[name], metrics[name], rtol=0, atol=1e-6)
    for name, value in weights.items():
        # Adam divides by the size of the gradient, which enlarges gradients that are only rounding.
        if not name.endswith("key/bias"):
            np.testing.assert_allclose(weights_packed[name], value, rtol=0, atol=1e-5, err_msg=name)


def test_a_position_is_that_of_a_sentence_a_row_and_is_taken_up(data):
    def batches(pack, position=None):
        return open_input(data.train.input_fn(8, shuffle=True, seed=3, pack=pack), mode="train", position=position)

    straight = list(itertools.islice(batches(True), 9))
    plain = list(itertools.islice(batches(False), 9))
    for one, other in zip(straight, plain, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.position == other.position
    resumed = list(itertools.islice(batches(True, plain[3].position), 5))
    for one, other in zip(straight[4:], resumed, strict=True):
        for name, value in one.features.items():
            np.testing.assert_array_equal(other.features[name], value)
    assert len({batch.features["input_ids"].shape for batch in straight}) <= 2


def test_what_cannot_be_packed_is_refused_by_name(data, tmp_path):
    with pytest.raises(ArgumentError, match="pack and buckets exclude each other"):
        data.train.input_fn(8, pack=True, buckets=2)
    with pytest.raises(ArgumentError, match="pack should be True, or a number of rows of at least 1"):
        data.train.input_fn(8, pack=0)
    with pytest.raises(ModelFnError, match=r"cannot be cut into micro-batches.*accumulate_steps=2"):
        classifier(data, tmp_path / "parts", accumulate_steps=2).train(data.train.input_fn(8, pack=True), steps=1)
    features, labels = next(data.train.input_fn(8, pack=True)())
    flat = {**features, "input_ids": features["input_ids"].reshape(8, -1)}
    with pytest.raises(ModelFnError, match="first_tokens is for packed batches"):
        classifier(data, tmp_path / "flat").train(lambda: [(flat, labels)])
    short = BERT.replace(max_position_embeddings=8)
    long = packed_features(encoded_examples(4, longest=60), np.arange(4), [RowShape.of(4, 4, 60)])
    with pytest.raises(ModelFnError, match="Cannot use sentences of more than 32 tokens: the encoder has 8 positions"):
        read_features({name: jnp.asarray(value) for name, value in long.items()}, short)
