"""What a run of the tests skipped, and why: a skip that nobody sees is a hole."""

from collections import Counter
from collections.abc import Iterable

import pytest


def skip_lines(reports: Iterable[pytest.TestReport]) -> list[str]:
    """One line for each reason, with how many tests it left out; a module that was skipped whole counts as one."""
    reasons = (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr) for report in reports)
    counts = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    return [f"NOT RUN: {count} skipped: {reason}" for reason, count in counts.most_common()]
