"""The training step of BERT-base can be planned for eight chips of a TPU v5e that are not available."""

import importlib.util
import json
from pathlib import Path

import pytest

from estimator_core.cli import main

pytestmark = pytest.mark.plugins


@pytest.mark.slow
def test_bert_base_on_v5e(capsys):
    program = Path(__file__).parent / "bert_plan_program.py"
    assert main(["plan", str(program), "--topology", "v5e:2x4", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["mesh"] == {"data": 8}
    assert plan["examples"] == 256
    if importlib.util.find_spec("libtpu") is None:
        assert plan["memory"]["compiled"] is False
    else:
        assert plan["memory"]["compiled"] is True
