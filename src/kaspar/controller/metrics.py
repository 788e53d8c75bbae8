"""What a controller records of itself: its queue, its events and the elections that it held.

A broker has one for as long as it runs, whichever broker controls. Written by the event loop, read by any thread.
"""

from kaspar.base.metrics import Histogram


class ControllerMetrics:
    def __init__(self) -> None:
        self.queue_time = Histogram()
        """How long events waited, in seconds."""
        self.processing_time = Histogram()
        """How long they took, their transactions with the store included, in seconds."""
        self.events_started = 0
        self.errors = 0
        """Events that failed because of a bug."""
        self.unclean_elections = 0
        """Leaders elected though they may lack committed records."""
        self.eligible_elections = 0
        """Leaders elected from the eligible leader replicas (KIP-966)."""

    def rotate(self) -> None:
        self.queue_time.rotate()
        self.processing_time.rotate()
