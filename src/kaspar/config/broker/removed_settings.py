"""Settings that older Kafka releases had. They are known, do nothing, and the start says why."""

_ZOOKEEPER = "it belongs to Kafka's ZooKeeper mode, which Kafka 4.0 removed"
_FORMAT = "there is one record format since Kafka 4.0"
_ADDRESS = "use listeners and advertised.listeners"

REMOVED_SETTINGS = {
    "advertised.host.name": _ADDRESS,
    "advertised.port": _ADDRESS,
    "auto.include.jmx.reporter": "JMX is not supported",
    "control.plane.listener.name": _ZOOKEEPER,
    "controlled.shutdown.max.retries": _ZOOKEEPER,
    "controlled.shutdown.retry.backoff.ms": _ZOOKEEPER,
    "eligible.leader.replicas.enable": "it is a feature level since Kafka 4.1",
    "group.coordinator.new.enable": "the new coordinator is the only one since Kafka 4.0",
    "host.name": _ADDRESS,
    "inter.broker.protocol.version": _ZOOKEEPER,
    "leader.imbalance.per.broker.percentage": _ZOOKEEPER,
    "log.message.downconversion.enable": _FORMAT,
    "log.message.format.version": _FORMAT,
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and ...after.max.ms",
    "offsets.commit.required.acks": "a commit always waits for all in-sync replicas since Kafka 4.0",
    "password.encoder.cipher.algorithm": _ZOOKEEPER,
    "password.encoder.iterations": _ZOOKEEPER,
    "password.encoder.key.length": _ZOOKEEPER,
    "password.encoder.keyfactory.algorithm": _ZOOKEEPER,
    "password.encoder.old.secret": _ZOOKEEPER,
    "password.encoder.secret": _ZOOKEEPER,
    "port": _ADDRESS,
    "quota.consumer.default": "set default quotas with kafka-configs",
    "quota.producer.default": "set default quotas with kafka-configs",
    "zookeeper.metadata.migration.enable": _ZOOKEEPER,
    "zookeeper.sync.time.ms": _ZOOKEEPER,
}
