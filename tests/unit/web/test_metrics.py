"""The metrics of a service's requests: by declared routes, bounded, over a sliding window."""

from typing import Any

import pytest

from kaspar.base.exposition import render
from kaspar.base.metrics import WINDOW_SECONDS
from kaspar.web import metrics as web_metrics
from kaspar.web.metrics import FAMILIES, HttpMetrics, name_route


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def request(path: str, *, matched: bool = True, method: str = "GET", **parameters: object) -> dict[str, Any]:
    scope: dict[str, Any] = {"path": path, "method": method, "path_params": parameters}
    return scope | {"endpoint": object()} if matched else scope


def page(metrics: HttpMetrics) -> list[str]:
    return b"".join(render(FAMILIES, metrics)).decode().splitlines()


@pytest.mark.parametrize(
    ("scope", "route"),
    [
        (request("/topics"), "/topics"),
        (request("/topics/orders", topic="orders"), "/topics/{topic}"),
        (request("/topics/topics", topic="topics"), "/topics/{topic}"),
        (request("/topics/o/partitions/0", topic="o", partition=0), "/topics/{topic}/partitions/{partition}"),
        (request("/topics/a/b", topic="a/b"), "/topics/{topic}"),
        (request("/no/such/page", matched=False), "other"),
    ],
)
def test_requests_are_counted_by_the_declared_path(scope: dict[str, Any], route: str) -> None:
    metrics = HttpMetrics("rest")
    metrics.record(scope, 200, 0.01)
    assert list(metrics.requests) == [(route, "GET", 200)]


def test_an_application_may_name_its_routes_itself() -> None:
    metrics = HttpMetrics("registry")
    scope = request("/subjects/a%2Fb", matched=False)
    name_route(scope, "/subjects/{subject}")
    metrics.record(scope, 404, 0.01)
    assert 'kaspar_http_requests_total{service="registry",route="/subjects/{subject}",method="GET",status="404"} 1' in (
        page(metrics)
    )


def test_what_clients_make_up_does_not_add_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_metrics, "MAX_ROUTES", 3)
    metrics = HttpMetrics("rest")
    for number in range(100):
        metrics.record(request(f"/made/up/{number}", method=f"METHOD{number}"), 200, 0.01)
        metrics.record(request(f"/not/logged/in/{number}"), 401, 0.01)
    assert len(metrics.times) <= 4
    assert len(metrics.requests) <= 8


def test_quantiles_forget_what_is_long_ago() -> None:
    clock = Clock()
    metrics = HttpMetrics("rest", clock)
    metrics.record(request("/slow"), 200, 5.0)
    assert metrics.times["/slow"].distribution().percentiles()[0] == pytest.approx(5, rel=0.035)
    for _ in range(2):
        clock.now += WINDOW_SECONDS
        metrics.maybe_rotate()
    assert metrics.times["/slow"].distribution().percentiles()[0] == 0
    assert metrics.times["/slow"].distribution().count == 1


def test_a_request_without_a_response_has_status_0() -> None:
    metrics = HttpMetrics("rest")
    metrics.record(request("/gone"), None, 0.01)
    assert metrics.requests["/gone", "GET", 0] == 1
