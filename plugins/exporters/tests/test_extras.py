"""A format with missing packages names what to install. No package is imported before it is used."""

import importlib.util
import sys

import pytest

import estimator_core as ec
import estimator_exporters
from estimator_core.errors import ArgumentError, ExportError
from plugins.exporters.tests.small_model import receiver_fn


@pytest.fixture
def nothing_more(monkeypatch):
    """Simulates an environment without the extras."""
    found = importlib.util.find_spec
    extras = ("tensorflow", "jax2onnx", "onnx", "onnxruntime", "starlette", "uvicorn", "prometheus_client")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in extras else found(name, *rest))


@pytest.mark.usefixtures("nothing_more")
@pytest.mark.parametrize(
    ("name", "extra", "package"),
    [("saved_model", "saved-model", "tensorflow"), ("onnx", "onnx", "jax2onnx, onnx, onnxruntime")],
)
def test_a_missing_extra_is_named_and_leaves_nothing(estimator, tmp_path, name, extra, package):
    with pytest.raises(ExportError, match=rf"needs {package}, .*pip install 'estimator-exporters\[{extra}\]'"):
        estimator.export_saved_model(str(tmp_path), receiver_fn, format=name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "library"), [("saved_model", "tensorflow"), ("onnx", "onnx"), ("onnx", "jax2onnx")])
def test_a_file_with_the_name_of_a_library_is_named_and_not_run(estimator, tmp_path, monkeypatch, name, library):
    """Otherwise a program called onnx.py that exports would be imported by its own export, and would never end."""
    (tmp_path / f"{library}.py").write_text("raise AssertionError('it runs')\n")
    monkeypatch.delitem(sys.modules, library, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ExportError, match=rf"package {library}, .*/{library}\.py in its place\. Rename that file"):
        estimator.export_saved_model(str(tmp_path / "export"), receiver_fn, format=name)


@pytest.mark.parametrize(
    ("name", "home", "extra", "library"),
    [("RayScorer", "on_ray", "ray", "ray"), ("BeamScorer", "on_beam", "beam", "apache_beam")],
)
def test_a_scorer_without_its_library_says_what_to_install(monkeypatch, name, home, extra, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"estimator_exporters.scoring.{home}", raising=False)
    told = rf"{name} needs {library}, .*pip install 'estimator-exporters\[predict,{extra}\]'"
    with pytest.raises(ModuleNotFoundError, match=told) as refused:
        getattr(estimator_exporters, name)
    assert refused.value.name == library


@pytest.mark.usefixtures("nothing_more")
def test_serving_without_its_extra(export):
    import argparse

    from estimator_core._cli.main import find_command

    parser = argparse.ArgumentParser()
    module = importlib.import_module(find_command("serve").target)
    module.configure(parser)
    with pytest.raises(ArgumentError, match=r"pip install 'estimator-exporters\[serve\]'"):
        module.run(parser.parse_args([export]))


def test_an_unknown_format_is_named(estimator, tmp_path):
    with pytest.raises(LookupError, match="gguf"):
        estimator.export_saved_model(str(tmp_path), receiver_fn, format="gguf")


def test_the_formats_can_be_looked_up():
    from estimator_core.plugins import default_plugins

    assert {"onnx", "saved_model", "stablehlo"} <= set(default_plugins().names("format"))
    assert ec.export.load.__doc__
