"""The examples on the page of the registry print what the page says."""

from kaspar.testing import Broker
from tests.integration.curl_pages import check_page


def test_examples_print_what_the_page_says() -> None:
    with Broker(registry=True) as broker:
        check_page("registry.md", documented="localhost:8081", served=broker.registry_url.removeprefix("http://"))
