"""Tests of the descriptions of host transforms."""

from __future__ import annotations

from typing import Any

import pytest

import estimator_core as ec
from estimator_core.errors import ExportError

TEXT = ec.export.Feature((None, 3), "string")


def test_a_transform_that_does_not_describe_itself_is_named() -> None:
    class Silent:
        name, version, files = "silent", 1, {}

        def config(self) -> dict[str, Any]:
            return {}

        def apply(self, batch: Any) -> Any:
            return batch

    with pytest.raises(ExportError, match="host transform 'silent' does not say what its operations are"):
        ec.export.host_programs([ec.export.Rename({"a": "b"}), Silent()], {"a": TEXT})


def test_programs_follow_each_other() -> None:
    first, second = ec.export.host_programs([ec.export.Rename({"a": "b"}), ec.export.Rename({"b": "c"})], {"a": TEXT})
    assert (first.outputs, second.outputs) == ({"b": "a"}, {"c": "b"})
    assert second.features == {"c": TEXT}
