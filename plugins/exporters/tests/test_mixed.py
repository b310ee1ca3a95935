"""A short version of `nox -s server_attacks`: mixed requests under attacks, and its checks find faults."""

import pytest

from plugins.exporters.tests.attacks import mixed
from plugins.exporters.tests.attacks.requests import KINDS

REQUESTS, LIVENESS = 400, "liveness p99, ms: attacked, bare asyncio beside it"


@pytest.fixture(scope="module")
def found():
    return mixed.run(REQUESTS)


def test_mixed_requests_under_attacks(found):
    """The answering time is checked only by the nox session, on an idle machine."""
    assert mixed.broken({**found, LIVENESS: (0.0, 0.0)}) == [], found
    assert found["requests"] == {kind.__name__: REQUESTS // len(KINDS) for kind in KINDS}
    assert sum(found["attacks"].values()) >= 1


@pytest.mark.parametrize(
    ("figure", "value", "message"),
    [
        ("wrong or unanswered", 1, "wrongly"),
        ("answered twice or never, by the server's own count", 1, "twice"),
        ("memory beyond the budget at most, MB", 201.0, "memory"),
        (LIVENESS, (150.0, 1.0), "149 ms later"),
    ],
)
def test_a_broken_limit_is_told(found, figure, value, message):
    assert message in str(mixed.broken({**found, figure: value}))
