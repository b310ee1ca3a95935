"""Tests of the section of the report, and of the file that it reads."""

import json
import math
from typing import ClassVar

import pytest

from estimator_core.errors import ArgumentError
from estimator_explain import Explanations, Importance, read_explanations, write_explanations

pytest.importorskip("estimator_report")

from estimator_explain.section import ExplanationSection
from estimator_report import ReportSource
from estimator_report.section_suite import ReportSectionSuite, unclosed


def found(strengths=None):
    return Explanations(
        step=7,
        importances=[
            Importance(features=("<age>",), metric="auc", baseline=0.9, losses=(0.2, 0.3)),
            Importance(features=("sex", "class"), metric="auc", baseline=0.9, losses=(0.1, 0.1)),
        ],
        strengths=strengths or {},
        residual=0.001,
    )


class TestExplanations(ReportSectionSuite):
    """The section reads a file, not results. The results of the suite name the folder that contains such a file."""

    results: ClassVar = {7: {"auc": 0.9}}

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def section(self):
        return ExplanationSection()

    def _source(self, results):
        for metrics in results.values():
            named = [Importance(features=("x",), metric=name, baseline=0.9, losses=(0.2,)) for name in metrics]
            write_explanations(self.folder, Explanations(step=7, importances=named, strengths=metrics))
        return ReportSource(model_dir=self.folder, evaluation="", results=results)


def body(model_dir):
    return ExplanationSection().body(ReportSource(model_dir=model_dir, evaluation="", results={}))


def test_a_model_dir_without_explanations_has_no_section(tmp_path):
    assert body(tmp_path) is None


def test_features_stand_in_order_with_their_numbers(tmp_path):
    write_explanations(tmp_path, found({"<age>": 0.5}))
    text = body(tmp_path)
    assert "Checkpoint 7." in text
    assert "<td>&lt;age&gt;</td><td>0.25</td>" in text
    assert text.index("&lt;age&gt;") < text.index("sex,class")
    assert "mean absolute attribution" in text
    assert text.count("<svg") == 2
    assert not unclosed(text)


def test_without_attributions_there_is_no_chart_of_them(tmp_path):
    write_explanations(tmp_path, found())
    assert body(tmp_path).count("<svg") == 1


def test_what_is_written_is_read(tmp_path):
    write_explanations(tmp_path, found({"x": 1.0}))
    assert read_explanations(tmp_path) == found({"x": 1.0})


def test_numbers_that_are_not_finite_are_texts_of_json(tmp_path):
    def refused(name):
        raise AssertionError(f"{name} is not JSON")

    importance = Importance(features=("x",), metric="loss", baseline=math.nan, losses=(math.inf, -math.inf, 0.5))
    path = write_explanations(tmp_path, Explanations(step=7, importances=[importance], strengths={"x": math.nan}))
    written = json.loads(path.read_text(), parse_constant=refused)
    assert written["importances"][0]["losses"] == ["Infinity", "-Infinity", 0.5]
    read = read_explanations(tmp_path)
    assert read.importances[0].losses == importance.losses
    assert math.isnan(read.importances[0].baseline)
    assert math.isnan(read.strengths["x"])


@pytest.mark.parametrize("text", ["", "[]", '{"step": 1}', "[" * 100_000, '{"importances": [{"features": 1}]}'])
def test_another_file_is_refused_by_name(tmp_path, text):
    (tmp_path / "explanations.json").write_text(text)
    with pytest.raises(ArgumentError, match=r"explanations\.json does not hold explanations"):
        read_explanations(tmp_path)
