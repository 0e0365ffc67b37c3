"""What all benchmarks share: the ``measure`` fixture, and the table at the end of the run."""

from __future__ import annotations

import platform

import pytest

from benchmarks.measure import Measure, Table


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TABLE] = Table()


TABLE = pytest.StashKey[Table]()


@pytest.fixture
def measure(request: pytest.FixtureRequest, benchmark) -> Measure:
    quick = bool(request.config.getoption("--benchmark-disable"))
    return Measure(request.config.stash[TABLE], benchmark, quick)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    table = config.stash[TABLE]
    if table.rows and not config.getoption("--benchmark-disable"):
        terminalreporter.section("figures")
        terminalreporter.write_line(f"{platform.python_implementation()} {platform.python_version()}, CPU time")
        terminalreporter.write_line(table.text())
