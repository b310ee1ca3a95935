"""Tests of ported programs against values that the old programs computed with TensorFlow 2.15.1 and 1.15.0."""

import pytest

from estimator_core.cli import main
from plugins.migration.tests.proof_list import PAIRS, PROOFS, QUICK, Pair

pytestmark = [pytest.mark.plugins, pytest.mark.libraries]


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, marks=() if pair in QUICK else pytest.mark.slow) for pair in PAIRS],
    ids=lambda pair: f"{pair.program}_{pair.function}",
)
def test_they_agree(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "prove", pair.old, pair.new, "--recorded", str(pair.recorded), *pair.options]) == 0
    assert f"The programs agree over 2 steps within 1e-05 (TensorFlow {pair.tensorflow}" in capsys.readouterr().out


@pytest.mark.slow
def test_another_rate_shows_after_the_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    (pair,) = QUICK
    new = f"{PROOFS / 'new_paper.py'}:another_rate"
    assert main(["migrate", "prove", pair.old, new, "--recorded", str(pair.recorded)]) == 3
    assert "The first to diverge is weights after step 1: highway_0/gate_bias" in capsys.readouterr().out
