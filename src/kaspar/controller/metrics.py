"""Metrics of a controller: its queue, its events and the elections that it held.

A broker has one instance as long as it runs, whether or not it is the controller. Written by the event loop, read by
any thread.
"""

from kaspar.base.metrics import Histogram


class ControllerMetrics:
    def __init__(self) -> None:
        self.queue_time = Histogram()
        """How long events waited, in seconds."""
        self.processing_time = Histogram()
        """How long handling them took, including the store transactions, in seconds."""
        self.events_started = 0
        self.errors = 0
        """Events that failed because of a bug."""
        self.unclean_elections = 0
        """Leaders elected although they may lack committed records."""
        self.eligible_elections = 0
        """Leaders elected from the eligible leader replicas (KIP-966)."""

    def rotate(self) -> None:
        self.queue_time.rotate()
        self.processing_time.rotate()
