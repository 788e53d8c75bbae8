"""A scenario of client telemetry."""

import contextlib
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode
from tests.integration.metrics.stage import Stage
from tests.peers.otlp import gauge, metrics_data
from tests.peers.telemetry_client import Pusher, subscribe


@contextlib.contextmanager
def pushes_good_and_bad(stage: Stage) -> Iterator[None]:
    metrics = metrics_data(gauge("m", 1.0))
    with stage.client() as client, stage.client() as other:
        subscribe(client, "all", metrics="*", interval_ms=60_000, match="client_id=.*")
        good, bad = Pusher(client), Pusher(other)
        assert (good.ask(), good.push(metrics)) == (ErrorCode.NONE, ErrorCode.NONE)
        assert good.push(metrics) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert (bad.ask(), bad.push(metrics, wrong_by=1)) == (ErrorCode.NONE, ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        assert (bad.ask(), bad.push(b"\xff", terminating=True)) == (ErrorCode.NONE, ErrorCode.INVALID_RECORD)
        yield
