"""Client telemetry (KIP-714): the metrics that clients are asked to push, and how pushed metrics are kept."""
