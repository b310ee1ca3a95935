"""Prints the results that nox sessions store in a folder: pytest's counts, their sum, and the sessions that failed."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def counts(report: Path) -> Counter[str]:
    """Returns the number of tests by outcome in one JUnit file."""
    total: Counter[str] = Counter()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        failed, errors, skipped = (int(suite.get(key, 0)) for key in ("failures", "errors", "skipped"))
        total += Counter(failed=failed, errors=errors, skipped=skipped)
        total["passed"] += int(suite.get("tests", 0)) - failed - errors - skipped
        total["seconds"] += round(float(suite.get("time", 0)))
    return total


def line(found: Counter[str]) -> str:
    """Returns the counts in the form of pytest's last line."""
    outcomes = ", ".join(f"{found[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if found[name])
    return f"{outcomes or 'no tests ran'} in {found['seconds']}s"


def main(folder: str) -> None:
    total: Counter[str] = Counter()
    for report in sorted(Path(folder).glob("*.xml")):
        found = counts(report)
        total += found
        print(f"{report.stem}: {line(found)}")
    ran = Path(folder, "sessions.json")
    sessions = json.loads(ran.read_text())["sessions"] if ran.exists() else []
    for result in ("failed", "aborted", "skipped"):
        named = [session["signatures"][0] for session in sessions if session["result"].lower() == result]
        if named:
            print(f"sessions {result}: {', '.join(named)}")
    took = {session["signatures"][0]: round(session["duration"]) for session in sessions}
    print("whole sessions:", ", ".join(f"{name} {seconds}s" for name, seconds in took.items()))
    print(f"==================== {line(total)} ====================")


if __name__ == "__main__":
    main(sys.argv[1])
