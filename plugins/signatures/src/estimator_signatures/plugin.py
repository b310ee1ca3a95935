"""What estimator-signatures declares to estimator-core: no component. The core calls it where a model is exported."""

from __future__ import annotations

ESTIMATOR_PLUGIN_API = (1, 0)
