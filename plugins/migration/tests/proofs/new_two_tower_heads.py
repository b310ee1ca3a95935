"""The parts of the ported two_tower_heads.py that are compared."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ported"))
import two_tower_heads

import estimator_core as ec


def towers(model_dir):
    head = two_tower_heads.ClickHead(model_dir, thresholds=[0.3, 0.7])
    config, params = ec.RunConfig(model_dir=model_dir), {"learning_rate": 0.03}
    return {
        "estimator": two_tower_heads.tower_estimator(two_tower_heads.make_columns(), [16, 8], 0.0, head, config, params)
    }
