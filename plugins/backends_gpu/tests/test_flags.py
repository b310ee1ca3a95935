"""Tests of compiler flags: the backend sets them, and the user's flags always have precedence."""

import os
import subprocess
import sys

import jax
import pytest

from estimator_backends_gpu import DEFAULT_FLAGS, GPUBackend, settings
from estimator_backends_gpu.flags import OPTIONS, compiler_options, flag_words, known_to_jaxlib
from estimator_core.errors import ArgumentError

NAMES = [flag.name for flag in DEFAULT_FLAGS]


def everything(name):
    return True


def test_all_defaults_are_set_where_nothing_is_said():
    assert flag_words({}, "", everything) == [f"--{flag.name}={flag.value}" for flag in DEFAULT_FLAGS]


@pytest.mark.parametrize("flag", DEFAULT_FLAGS, ids=lambda flag: flag.name)
def test_each_default_can_be_replaced_in_code_or_by_the_environment(flag):
    assert f"--{flag.name}=false" in flag_words({flag.name: False}, "", everything)
    for changes, environment in (({flag.name: None}, ""), ({}, f"--{flag.name}=false"), ({}, f"--{flag.name}")):
        names = [word.lstrip("-").partition("=")[0] for word in flag_words(changes, environment, everything)]
        assert names == [name for name in NAMES if name != flag.name]


def test_a_flag_that_this_jaxlib_does_not_know_is_left_out():
    """XLA ends the process at an unknown flag."""
    assert flag_words({"xla_of_tomorrow": 1}, "", NAMES.__contains__) == flag_words({}, "", everything)


def test_the_library_tells_which_flags_exist():
    assert known_to_jaxlib([*NAMES, "xla_flag_that_never_was"]) == frozenset(NAMES)


def test_xla_accepts_the_flags():
    """A process with a wrong flag or value ends as soon as it uses a device. It reads the flags of all devices."""
    words = " ".join(flag_words({}, "", everything))
    code = "import jax; print(jax.devices())"
    for flags, ends_well in ((words, True), (f"{words} --xla_gpu_flag_that_never_was=1", False)):
        environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
        assert (done.returncode == 0) == ends_well, done.stderr


_INITIALIZE = """
import os
from estimator_backends_gpu import GPUBackend, configure
configure(memory_fraction=0.5, flags={"xla_gpu_enable_pipelined_all_reduce": None, "--xla_gpu_autotune_level": 2})
backend = GPUBackend()
backend.initialize()
backend.initialize()
print(os.environ["XLA_FLAGS"], os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"])
try:
    configure(memory_fraction=0.6)
except ValueError as error:
    print(error)
"""


def initialized(code=_INITIALIZE, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("XLA_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines(), done.stderr


def test_initialize_sets_flags_and_share_of_memory_once():
    (line, late), _ = initialized()
    *flags, fraction = line.split()
    assert fraction == "0.5"
    assert "--xla_gpu_autotune_level=2" in flags
    assert not any("pipelined_all_reduce" in flag for flag in flags)
    assert len(flags) == len(DEFAULT_FLAGS) == len(set(flags))
    assert "was called too late" in late


def test_the_environment_wins():
    given = {"XLA_FLAGS": "--xla_gpu_autotune_level=0", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.7"}
    (line, _), _ = initialized(**given)
    assert line.startswith("--xla_gpu_autotune_level=0 --")
    assert line.count("autotune_level") == 1
    assert line.endswith(" 0.7")


def test_a_jax_that_has_started_is_left_as_it_is_and_told():
    code = "import jax; jax.devices()\n" + _INITIALIZE.replace('os.environ["XLA', 'os.environ.get("XLA').replace(
        '"]', '")'
    )
    (line, _), told = initialized(code, JAX_PLATFORMS="cpu")
    assert line == "None None"
    assert "jax was used before the gpu backend" in told


@pytest.mark.parametrize("fraction", [0, -1, 1.5])
def test_a_share_of_memory_that_cannot_be_is_refused(fraction):
    with pytest.raises(ArgumentError, match="memory_fraction"):
        settings.configure(memory_fraction=fraction)


def test_a_plan_compiles_with_the_flags_that_a_run_sets(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"--{DEFAULT_FLAGS[0].name}=false")
    monkeypatch.setattr(settings.SETTINGS, "flags", {DEFAULT_FLAGS[1].name: None, "xla_gpu_autotune_level": 2})
    given = GPUBackend().compiler_options()
    of_today = known_to_jaxlib(OPTIONS.values())
    assert len(of_today) in (0, len(OPTIONS))
    names = {OPTIONS[flag.name] if of_today and flag.name in OPTIONS else flag.name for flag in DEFAULT_FLAGS[2:]}
    assert set(given) == {*names, "xla_gpu_autotune_level"}
    assert given["xla_gpu_autotune_level"] == "2"


@pytest.mark.parametrize(("value", "mode"), [("1", "ON"), ("0", "DEFAULT"), ("true", "ON"), ("false", "DEFAULT")])
def test_every_way_to_write_a_flag_has_its_mode(value, mode):
    options = compiler_options([f"--{name}={value}" for name in OPTIONS], everything)
    assert options == dict.fromkeys(OPTIONS.values(), f"COLLECTIVE_PIPELINING_MODE_{mode}")


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_compiler_takes_the_options_of_a_plan(value):
    """Compilers of jaxlib 0.11 and later refuse some names that XLA_FLAGS may still contain."""
    words = [f"--{flag.name}={value}" for flag in DEFAULT_FLAGS]
    options = compiler_options(words, known_to_jaxlib(OPTIONS.values()).__contains__)
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    assert lowered.compile(compiler_options=options)(2.0) == 3.0
    with pytest.raises(Exception, match="No such compile option"):
        lowered.compile(compiler_options={**options, "xla_gpu_flag_that_never_was": True})
