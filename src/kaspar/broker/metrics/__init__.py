"""The metrics of a broker, and the metrics page.

The broker counts and measures into one `BrokerMetrics`. When the page is requested, `metrics_page` reads that, and the
state of the broker through the narrow `BrokerView`. Every metric is declared once, in the modules that `catalogue.py`
lists.
"""

from kaspar.broker.metrics.broker import BrokerMetrics
from kaspar.broker.metrics.topics import BrokerTopicMetrics, TopicMetrics
from kaspar.broker.metrics.view import BrokerState, BrokerView
from kaspar.network.request_metrics import FETCH_CONSUMER, FETCH_FOLLOWER, RequestMetrics, RequestMetricsByApi

__all__ = [
    "FETCH_CONSUMER",
    "FETCH_FOLLOWER",
    "BrokerMetrics",
    "BrokerState",
    "BrokerTopicMetrics",
    "BrokerView",
    "RequestMetrics",
    "RequestMetricsByApi",
    "TopicMetrics",
]
