"""The declarations of estimator-signatures: it has no components. The core calls it when a model is exported."""

from __future__ import annotations

ESTIMATOR_PLUGIN_API = (1, 0)
