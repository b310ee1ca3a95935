"""Rematerialisation: what the backward pass keeps of the forward pass, and what it computes again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def rematerialised(forward: Callable[..., Any], remat: str) -> Callable[..., Any]:
    """The forward pass with less memory for more arithmetic.

    Args:
        forward: what is differentiated.
        remat: "none" keeps every intermediate value; "dots" keeps the results of matrix products and computes the rest
            again; "full" keeps the inputs only.
    """
    if remat == "none":
        return forward
    policies = jax.checkpoint_policies
    policy = policies.dots_with_no_batch_dims_saveable if remat == "dots" else policies.nothing_saveable
    return jax.checkpoint(forward, policy=policy)
