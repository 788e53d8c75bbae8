"""How a request finds its resource."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from kaspar.console.context import ConsoleContext
from kaspar.console.http.app import make_app
from kaspar.console.http.assets import Assets
from kaspar.console.http.endpoint import Call, Endpoint


async def _name(call: Call) -> dict[str, str]:
    return dict(call.path)


def _get(path: str) -> httpx.Response:
    context = cast("ConsoleContext", SimpleNamespace(propagates=False))
    app = make_app(context, [Endpoint("GET", "/api/groups/{group:rest}", _name)], Assets({"index.html": b"page"}))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=cast("Any", app))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("/api/groups/billing", "billing"),
        ("/api/groups/eu%2Fbilling/", "eu/billing/"),
        ("/api/groups/billing%0A", "billing\n"),
        ("/api/groups/a%0D%0Ab", "a\r\nb"),
    ],
)
def test_the_rest_of_a_path_is_a_name_whatever_it_has(path: str, group: str) -> None:
    assert json.loads(_get(path).content) == {"group": group}


def test_what_is_not_there_is_said() -> None:
    response = _get("/api/nothing")
    assert (response.status_code, response.json()["message"]) == (404, "Not found: /api/nothing.")
