"""What a broker counts and measures, and the metrics page.

While it works, the broker writes into one `BrokerMetrics`. When the page is asked for, `metrics_page` reads that, and
looks at the broker through the narrow `BrokerView`. Every metric is declared once, in `traffic.py`,
`state_metrics.py`, `cleaner.py` or `coordinators.py`.
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
