"""Tests that the sections keep their contract, and show the values of the results."""

import math
import re
import sys
from pathlib import Path

import pytest
from results import results, row

from estimator_report import ReportSource
from estimator_report.charts import interval_chart, line_chart
from estimator_report.section_suite import ReportSectionSuite, unclosed
from estimator_report.sections.checkpoints import CheckpointSection
from estimator_report.sections.curves import CurveSection
from estimator_report.sections.slices import SliceSection


class TestCheckpoints(ReportSectionSuite):
    results = results()

    def section(self):
        return CheckpointSection()


class TestSlices(ReportSectionSuite):
    results = results()

    def section(self):
        return SliceSection()


class TestCurves(ReportSectionSuite):
    results = results()

    def section(self):
        return CurveSection()


def body(section):
    return section.body(ReportSource(model_dir=Path("runs/x"), evaluation="", results=results()))


def rows_below(text, heading):
    table = text.split(f"<h3>{heading}</h3>")[1].split("</table>")[0]
    return [re.sub(r"<[^>]+>", " ", line).split() for line in table.split("<tr")[2:]]


def test_the_worst_slice_comes_first_whichever_way_a_metric_is_good():
    text = body(SliceSection())
    for metric in ("accuracy", "average_loss"):
        order = [re.search(r"all|sex=\S+", " ".join(line)).group() for line in rows_below(text, metric)]
        assert order == ["all", "sex=male", "sex=(missing)", "sex=female"]


@pytest.mark.parametrize("metric", ["mae", "RMSE", "val/mape", "binary_crossentropy"])
def test_the_worst_slice_of_an_error_comes_first_and_is_red(metric):
    rows = [
        row(of, 10, 0.5, 0.5) | {"metrics": {metric: value}, "intervals": {metric: [value - 0.1, value + 0.1]}}
        for of, value in (({}, 0.5), ({"city": "good"}, 0.2), ({"city": "bad"}, 0.9))
    ]
    text = SliceSection().body(ReportSource(model_dir=Path("runs/x"), evaluation="", results={5: {"slices": rows}}))
    assert re.findall(r"<td>(city=[^<]*)</td>", text) == ["city=bad", "city=good"]
    assert re.findall(r'<tr class="bad"><td>([^<]+)</td>', text) == ["city=bad"]


def test_numbers_that_are_not_finite_have_no_place_in_a_chart():
    """One bad row makes the metric of all examples NaN. The other slices are still drawn."""
    rows = [("whole", 1.0, (0.5, 1.5)), ("open", 2.0, (1.0, math.inf)), ("none", math.nan, (math.nan, math.nan))]
    for marked in (math.nan, math.inf, -math.inf):
        for chart in (interval_chart("loss", rows, marked), interval_chart("loss", rows[2:], marked)):
            places = re.findall(r'\b(?:x|x1|x2|cx)="([^"]*)"', chart)
            assert all(math.isfinite(float(place)) for place in places), places
        assert interval_chart("loss", rows, marked).count("<circle") == 2


def test_a_chart_counts_the_values_that_it_cannot_draw():
    points = [(1, 0.5), (2, math.inf), (3, 0.25), (4, math.nan)]
    assert "2 of 4 values are not finite" in line_chart("loss", {"loss": points}, x="step", y="loss")
    assert "not finite" not in line_chart("loss", {"loss": points[:1]}, x="step", y="loss")


def test_the_largest_and_the_smallest_numbers_have_a_place_in_a_chart():
    largest = sys.float_info.max
    for values in ([-largest, largest], [largest, largest], [0.0, math.ulp(0.0)]):
        points = list(enumerate(values))
        drawn = line_chart("m", {"m": points}, x="step", y="m") + interval_chart(
            "m", [("a", values[0], None)], values[1]
        )
        assert "nan" not in drawn
        assert "inf" not in drawn


def test_a_slice_is_red_only_if_its_whole_interval_is_worse():
    marked = re.findall(r'<tr class="bad"><td>([^<]+)</td>', body(SliceSection()))
    assert marked == ["sex=male"]


def test_numbers_of_single_slices_have_no_chart_of_their_own():
    text = body(CheckpointSection())
    assert text.count("<svg") == 2
    assert "sex=female" not in text


def test_curves_of_all_and_of_slices():
    text = body(CurveSection())
    assert text.count("<svg") == 4
    areas = dict(re.findall(r">(\w+|sex=\w+), area ([\d.]+)<", text))
    assert float(areas["sex=male"]) < float(areas["all"]) < float(areas["sex=female"])
    assert ">170</text>" in text


def test_a_slice_has_one_colour_in_all_charts():
    colours = [
        re.findall(r'style="fill:(#\w+)">(sex=[^,<]+)', part)
        for section in (SliceSection(), CurveSection())
        for part in body(section).split("<svg")
    ]
    drawn = [{name: colour for colour, name in pairs} for pairs in colours if pairs]
    assert len(drawn) > 2
    assert all(one == drawn[0] for one in drawn)


def test_the_suite_finds_what_is_left_open():
    assert unclosed("<p><b>x</p>") != []
    assert unclosed("<p><br>x</p>") == []


@pytest.mark.parametrize("broken", ["<script>1</script>", "<img src='http://x.test/a'>", "<p>"])
def test_the_suite_refuses(broken):
    class Broken:
        title, order = "broken", 1

        def body(self, source):
            return broken if source.results else None

    suite = ReportSectionSuite()
    suite.results, suite.section = results(), Broken
    with pytest.raises(AssertionError):
        suite.test_gives_whole_html_that_loads_nothing()


def test_slices_of_1_and_of_its_text_are_two_and_true_has_a_history_of_its_own():
    values = [{}, {"k": 1}, {"k": "1"}, {"k": True}]
    found = {
        step: results()[step]
        | {"slices": [row(value, 10, 0.1 * (place + 1) + step / 1000, 0.2) for place, value in enumerate(values)]}
        for step in (0, 50)
    }
    source = ReportSource(model_dir=Path("runs/x"), evaluation="", results=found)
    text = SliceSection().body(source)
    assert re.findall(r"<td>((?:all|k=)[^<]*)</td>", text)[:4] == ["all", "k=1", "k=&#x27;1&#x27;", "k=True"]
    chart = text.split("<h3>accuracy</h3>")[1].split("</div>")[0].split("<svg")[2]
    lines = re.findall(r'<polyline points="([^"]*)"', chart)
    assert [len(line.split()) for line in lines] == [2, 2, 2, 2]  # one point per checkpoint
    assert "k=&#x27;1&#x27;" in CurveSection().body(source)
