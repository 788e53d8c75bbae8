"""Alert rules for Prometheus and dashboards for Grafana, declared here and generated into deploy/ (make generate).

The running monitor uses none of this. Expressions use the names that Prometheus' JMX exporter gives to Kafka's metrics
where they exist, so most rules also work with Apache Kafka.
"""
