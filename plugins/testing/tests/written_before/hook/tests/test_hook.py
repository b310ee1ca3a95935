"""The hook keeps its contract, and ends a training."""

from pathlib import Path

import estimator_core as ec
from estimator_core.testing import HookSuite, tiny_estimator, tiny_input_fn


class TestAcmeHookHook(HookSuite):
    def make(self):
        return ec.Plugins().get("hook", "acme_hook")(threshold=0.2, every=3)


def test_takes_part_in_a_run(tmp_path):
    hook = ec.Plugins().get("hook", "acme_hook")(threshold=1e9, every=5, patience=2)
    without = tiny_estimator(tmp_path / "without").train(tiny_input_fn(), steps=40)
    with_hook = tiny_estimator(tmp_path / "with").train(tiny_input_fn(), steps=40, hooks=[hook])
    assert Path(without.latest_checkpoint()).name == "40"
    assert Path(with_hook.latest_checkpoint()).name == "10"
    assert "below" in with_hook.stop_reason
