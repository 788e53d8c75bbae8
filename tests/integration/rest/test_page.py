"""The examples on the page of the REST proxy print what the page says."""

import httpx

from kaspar.testing import Broker
from tests.integration.curl_pages import check_page
from tests.integration.rest.serving import RunningRest

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
"""On the page."""


def test_examples_print_what_the_page_says() -> None:
    """On a broker without other topics."""
    with Broker(process=True, overrides={"group.initial.rebalance.delay.ms": "0"}) as broker:
        values = {
            "bootstrap.servers": broker.bootstrap_servers,
            "schema.registry.url": "mock://page",
            "consumer.request.timeout.ms": "4000",
        }
        with RunningRest(values) as rest:
            cluster_id = httpx.get(f"{rest.url}/v3/clusters").json()["data"][0]["cluster_id"]
            check_page(
                "rest.md",
                documented="localhost:8082",
                served=rest.url.removeprefix("http://"),
                also={CLUSTER_ID: cluster_id},
            )
