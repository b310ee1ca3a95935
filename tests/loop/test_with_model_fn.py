"""Tests of `with_model_fn`: the inner model_fn receives what the new Estimator has."""

from __future__ import annotations

from typing import Any

import numpy as np

import estimator_core as ec


def batches() -> Any:
    x = np.linspace(0, 1, 8, dtype=np.float32)[:, None]
    return iter([({"x": x}, np.ones(8, np.float32))])


def test_the_inner_model_fn_gets_the_other_config(tmp_path: Any) -> None:
    seen: list[str] = []

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        seen.append(config.model_dir)
        weight = ec.get_variable("w", (1,))
        assert weight.dtype == features["x"].dtype
        return ec.EstimatorSpec(mode, predictions=features["x"] * weight)

    first = ec.Estimator(model_fn, str(tmp_path / "first"), ec.RunConfig(allow_untrained=True))
    config = first.config.replace(model_dir=str(tmp_path / "second"), precision="bfloat16")
    second = ec.with_model_fn(first, first.model_fn, config)
    assert len(list(second.predict(batches))) == 8
    assert set(seen) == {str(tmp_path / "second")}
