"""URLs in responses, as clients can reach the proxy."""

import pytest
from starlette.requests import Request

from kaspar.rest.http import Links
from kaspar.rest.settings import RestSettings


def request_at(scheme: str, host: str) -> Request:
    scope = {"type": "http", "scheme": scheme, "path": "/x", "query_string": b"", "headers": [(b"host", host.encode())]}
    return Request(scope)


@pytest.mark.parametrize(
    ("values", "scheme", "expected"),
    [
        ({}, "http", "http://asked:8082/y"),
        ({"host.name": "proxy"}, "http", "http://proxy:8082/y"),
        ({"advertised.listeners": "http://out:80,https://out:443/"}, "https", "https://out:443/y"),
        ({"advertised.listeners": "http://out:80", "host.name": "proxy"}, "http", "http://out:80/y"),
        ({"advertised.listeners": "https://out:443", "host.name": "proxy"}, "http", "http://proxy:8082/y"),
    ],
)
def test_links_have_the_address_that_is_set_or_that_the_client_asked_for(
    values: dict[str, str], scheme: str, expected: str
) -> None:
    assert Links(RestSettings.of(values)).to(request_at(scheme, "asked:8082"), "/y") == expected


def test_a_host_name_takes_the_port_of_the_request_if_there_is_one() -> None:
    links = Links(RestSettings.of({"host.name": "proxy"}))
    assert links.to(request_at("http", "asked"), "/y") == "http://proxy/y"
