"""A cluster of Ray with two nodes on this machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MEMORY = 100 * 2**20


@contextmanager
def cluster() -> Iterator[Any]:
    """Starts two node processes, and yields the `Cluster` of Ray's own tests."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    site = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "object_store_memory": _MEMORY})
    try:
        add_node(site)
        yield site
    finally:
        site.shutdown()


def add_node(site: Any) -> None:
    """Adds a node to the head node, and waits for it."""
    site.add_node(num_cpus=2, object_store_memory=_MEMORY)
    site.wait_for_nodes()
