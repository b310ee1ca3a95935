"""Sixty wrong inputs: each is refused with feature, row, value and what to do; nothing is trained, nothing written.

`UPDATE=1` writes docs/wrong_inputs.md from the messages. Otherwise the page is compared with them.
"""

import os
import re

import pytest

import estimator_core as ec
from estimator_core.errors import EstimatorError
from plugins.canned_tabular.tests import wrong_inputs as wrong

pytest.importorskip("pandas")
pytestmark = [pytest.mark.plugins, pytest.mark.libraries]
#: Words that begin the advice of a message.
CURES = "Fill it|Correct|Convert|Write it|Give|Bring|Add|Send|Leave"
FOUND = {}


@pytest.fixture(scope="module", autouse=True)
def page():
    yield
    if os.environ.get("UPDATE") and len(FOUND) == len(wrong.CASES):
        wrong.PAGE.write_text(wrong.page(FOUND))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from estimator_exporters.serving.repository import Source
    from plugins.exporters.tests.live_server import running

    folder = tmp_path_factory.mktemp("served")
    trained = wrong.estimator(folder).train(wrong.from_dict(wrong.table(), folder))
    features = {"age": ec.export.Feature((None,)), "city": ec.export.Feature((None,), "string")}
    trained.export_saved_model(str(folder / "export"), ec.export.build_raw_serving_input_receiver_fn(features))
    with running(sources=[Source(name="people", directory=folder / "export")]) as found:
        yield found


def told(fault, message, folder, door):
    """Checks that the message names the fault: the column, the row, the value, and the advice."""
    column, value = wrong.FAULTS[fault]
    assert column in message or (column == "income" and message.startswith("Labels hold"))
    if value is not wrong.ABSENT:
        whole_column = door == "Parquet" and fault in ("a number is a date", "a word is a number")
        row = 0 if whole_column else wrong.WRONG
        assert re.search(rf"(row|record) {row}\b|line {row + 2}\b", message), message
        if value is None:
            assert re.search(r"missing|no value|not finite|NaN|nan", message), message
        else:
            short = str(value)[:10] if fault == "a number is a date" else str(value)
            assert short in message or re.search("bytes_list|float_list|has 2 values", message), message
    assert re.search(rf"(^|[.:] )({CURES})\b", message), message
    FOUND[fault, door] = wrong.line(fault, door, message, folder)
    if not os.environ.get("UPDATE"):
        assert FOUND[fault, door] in wrong.PAGE.read_text().split(f"## {fault.capitalize()}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("door", wrong.DOORS)
@pytest.mark.parametrize("fault", wrong.FAULTS)
def test_wrong_rows_to_train_on(tmp_path, fault, door):
    with pytest.raises(EstimatorError) as found:
        wrong.estimator(tmp_path).train(wrong.DOORS[door](wrong.table(fault), tmp_path))
    told(fault, str(found.value), tmp_path, door)
    assert not [path for path in (tmp_path / "model").rglob("*") if path.is_file()]


@pytest.mark.parametrize("fault", wrong.OF_REQUESTS)
def test_wrong_requests(server, tmp_path, fault):
    status, _, answer = server.request("POST", "/v1/models/people:predict", wrong.request(fault))
    assert status == 400
    told(fault, answer["error"], tmp_path, wrong.REQUEST)


@pytest.mark.parametrize("door", wrong.DOORS)
def test_the_rows_are_right_otherwise(tmp_path, door):
    """All input functions read the same eight rows."""
    source = wrong.DOORS[door](wrong.table(), tmp_path)
    ((features, labels),) = list(source())
    assert features["age"].tolist() == [30.0 + n for n in range(wrong.ROWS)]
    assert [label.decode() if isinstance(label, bytes) else label for label in labels] == ["low", "high"] * 4


def test_there_are_sixty():
    assert len(wrong.CASES) >= 60
