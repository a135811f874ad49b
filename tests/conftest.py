"""What holds for all tests: how many examples Hypothesis tries, and that CI takes no test on trust."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))

settings.register_profile("short", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile(
    "campaign", deadline=None, max_examples=5_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("campaign" if CAMPAIGN else "short")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """In CI a skipped test is a failure: it would look like one that passed."""
    skipped = terminalreporter.stats.get("skipped", [])
    if os.environ.get("CI") and skipped:
        for report in skipped:
            terminalreporter.write_line(f"skipped in CI: {report.nodeid}", red=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Make such a run fail."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and exitstatus == 0 and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
