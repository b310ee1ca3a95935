"""What estimator-experiment declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

ESTIMATOR_PLUGIN_API = (1, 0)
