"""The output of `estimator new-plugin` handles padded batches and raw signatures like the project's own components."""

import sys

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.metrics import applying_example_weights
from estimator_core.plugins import Plugins
from estimator_core.testing import tiny_estimator, tiny_input_fn, tiny_receiver_fn
from estimator_testing.cli.scaffold import write_package


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes the package of a kind, and returns its plugins."""

    def write(kind):
        write_package(f"acme-padded-{kind}", kind, tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path / f"acme-padded-{kind}" / "src"))
        module = __import__(f"acme_padded_{kind}.plugin", fromlist=["plugin"])
        return Plugins(autoload=False, extra=[module], environ={}, strict=True)

    yield write
    for name in [name for name in sys.modules if name.startswith("acme_padded_")]:
        del sys.modules[name]


def test_the_loss_of_the_head_leaves_padding_out(written):
    head = written("head").get("head", "acme_padded_head")()
    labels, logits = np.array([[0.5], [3.0], [9.0]]), np.array([[0.0], [0.0], [0.0]], np.float32)
    whole = head.loss(labels[:2], logits[:2], {}, ec.ModeKeys.TRAIN)
    with applying_example_weights(np.array([1.0, 1.0, 0.0], np.float32)):
        padded = head.loss(labels, logits, {}, ec.ModeKeys.TRAIN)
    np.testing.assert_allclose(padded, whole, rtol=1e-6)
    assert head.loss(labels, logits, {}, ec.ModeKeys.TRAIN) > whole + 1  # the loss that the mask removes


def test_the_head_is_trained_on_padded_batches_as_on_whole_ones(written, tmp_path):
    import optax

    make = written("head").get("head", "acme_padded_head")
    x = np.arange(20, dtype=np.float32).reshape(10, 2) / 10

    def model_fn(features, labels, mode):
        logits = features["x"] @ ec.get_variable("w", (2, 1))
        return make().create_estimator_spec(features, mode, logits, labels=labels, optimizer=optax.sgd(0.1))

    def results(name, ragged):
        def batches():
            return iter([({"x": x[at : at + 4]}, x[at : at + 4, 0]) for at in (0, 4, 8)])  # the last batch has two rows

        config = ec.RunConfig(model_dir=str(tmp_path / name), tf_random_seed=1)
        estimator = ec.Estimator(model_fn, config=config)
        input_fn = ec.inputs.from_iterable(batches, ragged=ragged, fresh_arrays=True)
        return estimator.train(input_fn, steps=3).evaluate(input_fn)

    padded, whole = results("padded", "pad"), results("whole", "exact")
    assert padded["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    assert padded["average_loss"] == pytest.approx(whole["average_loss"], rel=1e-5)


def test_an_export_of_the_format_has_raw_signatures(written, tmp_path):
    pytest.importorskip("flatbuffers")  # the package requires it
    plugins = written("format")
    estimator = tiny_estimator(str(tmp_path / "model"), plugins=plugins).train(tiny_input_fn(), steps=1)
    path = estimator.export_saved_model(str(tmp_path / "export"), tiny_receiver_fn, format="acme_padded_format")
    loaded = ec.export.load(path, plugins=plugins)
    assert set(loaded.raw_signatures) == set(loaded.signatures)
    assert loaded.raw_signatures
