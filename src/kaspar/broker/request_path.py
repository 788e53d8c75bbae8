"""Chooses what requests pass on their way to the pipeline: the request log and the quota for request time are only in
the path while they are enabled, so that they cost nothing otherwise.
"""

from kaspar.broker.listeners import Listeners
from kaspar.broker.request_quotas import RequestQuotas
from kaspar.network.connection import RequestHandler
from kaspar.network.pipeline import Pipeline
from kaspar.network.request_log import LoggedRequests, logs_requests
from kaspar.network.timed_requests import TimedRequests


class RequestPath:
    def __init__(self, network: Listeners, quotas: RequestQuotas) -> None:
        self._network = network
        self._quotas = quotas

    def lead_to(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._timed_requests = TimedRequests(pipeline, self._quotas.count_time)
        self._quotas.on_change.append(self._quotas_changed)

    def choose(self) -> None:
        """Build the path for new requests from what is enabled now."""
        requests: RequestHandler = self._timed_requests if self._quotas.request_time.enabled else self._pipeline
        if logs_requests():
            requests = LoggedRequests(requests)
        self._network.serve(requests)

    def _quotas_changed(self) -> None:
        self._pipeline.use_quota(self._quotas if self._quotas.at_arrival else None)
        self.choose()
