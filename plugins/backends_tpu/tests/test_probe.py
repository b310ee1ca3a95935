"""Tests of every reason why a TPU cannot be used: the message says what to do."""

import pytest

from estimator_backends_tpu.probe import chips_on_bus, probe
from estimator_core.backends import Available, Unavailable


def asked(libtpu=True, chips=("TPU v5e",) * 4, **environment):
    return probe(environment, lambda: libtpu, lambda: chips)


def test_chips_are_available_and_named():
    assert asked() == Available(priority=200, summary="4 x TPU v5e on this machine")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (lambda: asked(JAX_PLATFORMS="cpu"), ["JAX_PLATFORMS=cpu", "unset"]),
        (lambda: asked(libtpu=False), ["libtpu", "estimator-backends-tpu[tpu]"]),
        (lambda: asked(chips=()), ["no TPU", "PCI"]),
    ],
    ids=["platforms", "runtime", "chips"],
)
def test_a_reason_says_what_is_missing_and_what_to_do(found, words):
    result = found()
    assert isinstance(result, Unavailable)
    assert [word for word in words if word not in result.reason] == []


def test_a_runtime_named_by_path_is_enough():
    assert isinstance(asked(libtpu=False, TPU_LIBRARY_PATH="/lib/libtpu.so"), Available)


def test_chips_are_found_by_vendor_and_device(tmp_path):
    for name, vendor, device in (("0", "0x1ae0", "0x0063"), ("1", "0x1ae0", "0x0042"), ("2", "0x10de", "0x0063")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "device").write_text(f"{device}\n")
    (tmp_path / "3").mkdir()
    assert chips_on_bus(tmp_path) == ("TPU v5e",)
    assert chips_on_bus(tmp_path / "nothing") == ()
