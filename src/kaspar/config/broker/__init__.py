"""The settings of a broker, by Kafka's names: one section per module, one table of them all (BrokerConfig)."""

from kaspar.config.broker.broker_config import BrokerConfig

__all__ = ["BrokerConfig"]
