"""Alerts on brokers, the controller and replication."""

from typing import Final

from kaspar.monitor.rules.alert import BROKERS, Alert, Group, Severity

BROKER_ALERTS: Final = Group(
    "kaspar-brokers",
    "Brokers and the controller",
    (
        Alert(
            "KasparBrokerDown",
            f'up{{job="{BROKERS}"}} == 0',
            "1m",
            Severity.CRITICAL,
            "Broker {{ $labels.instance }} does not respond",
            "The broker's metrics page cannot be read: the process has ended or hangs, or its machine is unreachable.",
            "Check the end of its log and restart it; other brokers lead its partitions in the meantime.",
            "kaspar status",
        ),
        Alert(
            "KasparBrokerFenced",
            "max(kafka_controller_kafkacontroller_fencedbrokercount) > 0",
            "2m",
            Severity.CRITICAL,
            "{{ $value }} brokers that hold replicas are not in the cluster",
            "They do not heartbeat to the controller, so their replicas do not protect data.",
            "Start them; a broker that will not return needs its replicas moved to others.",
            "kafka-topics --bootstrap-server BROKERS --describe --under-replicated-partitions",
        ),
        Alert(
            "KasparNoController",
            "sum(kafka_controller_kafkacontroller_activecontrollercount) < 1",
            "1m",
            Severity.CRITICAL,
            "The cluster has no controller",
            "No broker is the controller, or the controller cannot reach the metadata store: leaders on failed "
            "brokers are not replaced, and topics cannot be changed.",
            "Check the metadata store (ZooKeeper), then the brokers' controller.log.",
            "kafka-cluster cluster-id --bootstrap-server BROKERS",
        ),
        Alert(
            "KasparSeveralControllers",
            "sum(kafka_controller_kafkacontroller_activecontrollercount) > 1",
            "1m",
            Severity.CRITICAL,
            "{{ $value }} brokers claim to be the controller",
            "Brokers that should form one cluster have formed several, each with its own topics.",
            "Compare zookeeper.connect and the cluster id in the brokers' meta.properties.",
            "kafka-cluster cluster-id --bootstrap-server BROKER",
        ),
    ),
)

REPLICATION_ALERTS: Final = Group(
    "kaspar-replication",
    "Partitions and replicas",
    (
        Alert(
            "KasparOfflinePartitions",
            "sum(kafka_controller_kafkacontroller_offlinepartitionscount) > 0",
            "1m",
            Severity.CRITICAL,
            "{{ $value }} partitions have no leader",
            "They can be neither written nor read: no in-sync replica is up.",
            "Start the brokers that have these replicas. Only if their data is gone, run an unclean leader "
            "election, which loses records.",
            "kafka-topics --bootstrap-server BROKERS --describe --unavailable-partitions",
        ),
        Alert(
            "KasparUnderReplicatedPartitions",
            "kafka_server_replicamanager_underreplicatedpartitions > 0",
            "5m",
            Severity.WARNING,
            "{{ $value }} partitions led by {{ $labels.instance }} are under-replicated",
            "A broker is down, or a follower is falling behind. One more failure may make partitions unavailable.",
            "Find the brokers that are missing from the in-sync replicas.",
            "kafka-topics --bootstrap-server BROKERS --describe --under-replicated-partitions",
        ),
        Alert(
            "KasparUnderMinIsrPartitions",
            "kafka_server_replicamanager_underminisrpartitioncount > 0",
            "1m",
            Severity.CRITICAL,
            "{{ $value }} partitions led by {{ $labels.instance }} reject acks=all",
            "Fewer replicas than min.insync.replicas are in sync: producers get NOT_ENOUGH_REPLICAS.",
            "Start the missing brokers.",
            "kafka-topics --bootstrap-server BROKERS --describe --under-min-isr-partitions",
        ),
        Alert(
            "KasparUncleanElection",
            "increase(kafka_controller_controllerstats_uncleanleaderelections_total[10m]) > 0",
            "0m",
            Severity.CRITICAL,
            "A leader was elected that may lack committed records",
            "unclean.leader.election.enable let a replica lead that was not in sync: acknowledged records may be lost.",
            "Find out which brokers were down at the same time; consider disabling unclean elections.",
            "kafka-configs --bootstrap-server BROKERS --describe --entity-type topics --entity-name TOPIC --all",
        ),
        Alert(
            "KasparIsrShrinks",
            "increase(kafka_server_replicamanager_isrshrinks_total[15m]) > 2",
            "0m",
            Severity.WARNING,
            "Followers of partitions led by {{ $labels.instance }} keep falling out of sync",
            "Followers did not fetch up to the end of the log within replica.lag.time.max.ms: they are overloaded "
            "or paused, or their disk or network is slow.",
            "Compare request times, disk and network of the followers.",
            "kafka-replica-verification --broker-list BROKERS --topics-include TOPIC",
        ),
    ),
)
