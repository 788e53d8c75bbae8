"""How requests reach the pipeline: by what is on, the log of requests and quotas for their time. What is not costs
nothing.
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
        """Let new requests come by what is on now."""
        requests: RequestHandler = self._timed_requests if self._quotas.request_time.enabled else self._pipeline
        if logs_requests():
            requests = LoggedRequests(requests)
        self._network.serve(requests)

    def _quotas_changed(self) -> None:
        self._pipeline.use_quota(self._quotas if self._quotas.at_arrival else None)
        self.choose()
