"""Tests that flags of the TPU compiler reach libtpu, and never end the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estimator_backends_tpu.flags import VARIABLE, add_flags
from estimator_core.errors import ArgumentError

#: Names of flags, in the form that a library contains.
CONTENT = b"\x7fELF\0xla_tpu_scoped_vmem_limit_kib\0xla_enable_async_all_gather\0"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with two flags."""
    path = tmp_path / "libtpu.so"
    path.write_bytes(CONTENT)
    return path


def test_flags_are_added_to_those_of_the_environment(library: Path) -> None:
    environment = {VARIABLE: "--xla_enable_async_all_gather=false"}
    add_flags(environment, {"--xla_tpu_scoped_vmem_limit_kib": 1024, "xla_enable_async_all_gather": True}, library)
    assert environment == {VARIABLE: "--xla_enable_async_all_gather=false --xla_tpu_scoped_vmem_limit_kib=1024"}
    add_flags(environment, {}, library)
    assert environment[VARIABLE].count("--") == 2


def test_the_last_call_counts(library: Path) -> None:
    environment = {VARIABLE: "--a=0"}
    own = add_flags(environment, {"xla_tpu_scoped_vmem_limit_kib": 1}, library)
    own = add_flags(environment, {"xla_tpu_scoped_vmem_limit_kib": 2}, library, before=own)
    assert environment == {VARIABLE: "--a=0 --xla_tpu_scoped_vmem_limit_kib=2"}
    assert add_flags(environment, {}, library, before=own) == []
    assert environment == {VARIABLE: "--a=0"}


def test_a_flag_that_the_environment_unsets_stays_so(library: Path) -> None:
    environment = {VARIABLE: "--noxla_enable_async_all_gather"}
    assert add_flags(environment, {"xla_enable_async_all_gather": True}, library) == []
    assert environment == {VARIABLE: "--noxla_enable_async_all_gather"}


@pytest.mark.parametrize("value", [None, "", "a b", "1\n--b=2"])
def test_a_value_that_cannot_be_written_is_refused(library: Path, value: object) -> None:
    environment: dict[str, str] = {}
    with pytest.raises(ArgumentError, match="xla_enable_async_all_gather needs a value without spaces; given: "):
        add_flags(environment, {"xla_enable_async_all_gather": value}, library)
    assert environment == {}


@pytest.mark.parametrize("name", ["xla_tpu_scoped_vmem", "vmem_limit_kib", "xla_no_such_flag"])
def test_a_flag_that_libtpu_lacks_is_refused(library: Path, name: str) -> None:
    environment: dict[str, str] = {}
    with pytest.raises(ArgumentError, match=f"libtpu has no flag {name}, and would end the process"):
        add_flags(environment, {name: 1, "xla_enable_async_all_gather": True}, library)
    assert environment == {}


def test_without_libtpu_nothing_is_checked() -> None:
    environment: dict[str, str] = {}
    add_flags(environment, {"xla_of_the_pod": 1}, None)
    assert environment == {VARIABLE: "--xla_of_the_pod=1"}


def test_once_jax_has_started_it_is_too_late() -> None:
    code = (
        "import jax, estimator_backends_tpu\n"
        "estimator_backends_tpu.configure(flags={})\n"
        "jax.devices()\n"
        "estimator_backends_tpu.configure(flags={})\n"
        "estimator_backends_tpu.configure(flags={'a': 1})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ArgumentError: estimator_backends_tpu.configure was called too late" in done.stderr
