"""Tests of every reason why a GPU cannot be used: the message says what to do."""

import pytest

from estimator_backends_gpu.driver import Driver
from estimator_backends_gpu.probe import probe
from estimator_core.backends import Available, Unavailable

CARD = "NVIDIA H100 80GB HBM3"
WORKING = Driver(cuda=(13, 0), devices=(CARD, CARD))
INSTALLED = {"jax-cuda13-plugin": "0.10.2", "jaxlib": "0.10.2"}


def asked(driver=WORKING, installed=INSTALLED, **environment):
    return probe(environment, lambda: driver, installed.get)


def test_two_cards_are_available_and_named():
    assert asked() == Available(priority=100, summary=f"2 x {CARD}")


def test_the_plugin_for_cuda_12_is_enough():
    installed = {"jax-cuda12-plugin": "0.10.2", "jaxlib": "0.10.2"}
    assert isinstance(asked(Driver(cuda=(12, 4), devices=(CARD,)), installed), Available)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (lambda: asked(JAX_PLATFORMS="cpu"), ["JAX_PLATFORMS=cpu", "unset"]),
        (lambda: asked(installed={"jaxlib": "0.10.2"}), ["no CUDA plugin", "estimator-backends-gpu[cuda]"]),
        (lambda: asked(installed={**INSTALLED, "jaxlib": "0.10.3"}), ["0.10.2", "0.10.3", "same version"]),
        (lambda: asked(driver=None), ["no NVIDIA driver", "libcuda"]),
        (lambda: asked(Driver(cuda=(12, 4), devices=(CARD,))), ["too old", "12.4", "13.0", "Update"]),
        (lambda: asked(Driver(cuda=(13, 0), devices=(), error="cuInit failed with error 803")), ["803", "nvidia-smi"]),
        (lambda: asked(Driver(cuda=(13, 0), devices=())), ["no device"]),
        (lambda: asked(Driver(cuda=(13, 0), devices=()), CUDA_VISIBLE_DEVICES="-1"), ["CUDA_VISIBLE_DEVICES='-1'"]),
    ],
    ids=["platforms", "plugin", "versions", "driver", "old", "broken", "none", "hidden"],
)
def test_a_reason_says_what_is_missing_and_what_to_do(found, words):
    result = found()
    assert isinstance(result, Unavailable)
    assert [word for word in words if word not in result.reason] == []


def test_jax_platforms_that_names_cuda_among_others_is_no_reason():
    assert isinstance(asked(JAX_PLATFORMS="cuda,cpu"), Available)
