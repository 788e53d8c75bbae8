"""The examples on the page of the REST proxy print what the page says."""

import doctest
import subprocess
from pathlib import Path

from kaspar.testing import Broker
from tests.integration.cli.records.test_pages import examples
from tests.integration.rest.serving import RunningRest
from tests.peers.downloads import require_tool
from tests.peers.missing import unless_missing

PAGE = Path(__file__).parents[3] / "docs" / "rest.md"
ADDRESS = "localhost:8082"


def test_examples_print_what_the_page_says() -> None:
    """One after the other, since they build on each other; on a broker without other topics."""
    unless_missing(lambda: require_tool("curl"))
    with Broker(process=True, overrides={"group.initial.rebalance.delay.ms": "0"}) as broker:
        values = {
            "bootstrap.servers": broker.bootstrap_servers,
            "schema.registry.url": "mock://page",
            "consumer.request.timeout.ms": "4000",
        }
        with RunningRest(values) as rest:
            address = rest.url.removeprefix("http://")
            for example in examples(PAGE.read_text()):
                command = example.command.replace(ADDRESS, address)
                printed = subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout
                found = printed.replace(address, ADDRESS)
                same = doctest.OutputChecker().check_output(example.expected, found, doctest.NORMALIZE_WHITESPACE)
                assert same, f"$ {example.command}\n--- expected\n{example.expected}--- printed\n{found}"
