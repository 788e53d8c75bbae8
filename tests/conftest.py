"""Options and fixtures for all tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against",
        choices=("kaspar", "kafka"),
        default="kaspar",
        help="the broker that the compat tests run against: ours, or Apache Kafka's, which shows a wrong expectation",
    )
