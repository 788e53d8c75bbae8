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
            "Broker {{ $labels.instance }} does not answer",
            "The broker's metrics page cannot be read: the process has ended or hangs, or its machine is unreachable.",
            "Look at the end of its log and start it again; its partitions are led by others meanwhile.",
            "kaspar status",
        ),
        Alert(
            "KasparBrokerFenced",
            "max(kafka_controller_kafkacontroller_fencedbrokercount) > 0",
            "2m",
            Severity.CRITICAL,
            "{{ $value }} brokers that hold replicas are not in the cluster",
            "The controller does not hear of them. Their replicas do not protect data now.",
            "Start them; a broker that will not return needs its replicas moved to others.",
            "kafka-topics --bootstrap-server BROKERS --describe --under-replicated-partitions",
        ),
        Alert(
            "KasparNoController",
            "sum(kafka_controller_kafkacontroller_activecontrollercount) < 1",
            "1m",
            Severity.CRITICAL,
            "The cluster has no controller",
            "No broker controls the cluster, or the controller does not reach the metadata store: leaders of failed "
            "brokers are not replaced, and topics cannot be changed.",
            "Check the metadata store (ZooKeeper), then the brokers' controller.log.",
            "kafka-cluster cluster-id --bootstrap-server BROKERS",
        ),
        Alert(
            "KasparSeveralControllers",
            "sum(kafka_controller_kafkacontroller_activecontrollercount) > 1",
            "1m",
            Severity.CRITICAL,
            "{{ $value }} brokers say that they are the controller",
            "Brokers that should be one cluster have formed several, each with topics of its own.",
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
            "They can be neither written nor read: no replica that is in sync is up.",
            "Start the brokers that have these replicas. Only if their data is gone, elect a leader uncleanly, which "
            "loses records.",
            "kafka-topics --bootstrap-server BROKERS --describe --unavailable-partitions",
        ),
        Alert(
            "KasparUnderReplicatedPartitions",
            "kafka_server_replicamanager_underreplicatedpartitions > 0",
            "5m",
            Severity.WARNING,
            "{{ $value }} partitions led by {{ $labels.instance }} lack a replica in sync",
            "A broker is down, or a follower does not keep up. One more failure may make partitions unavailable.",
            "Find the brokers that are missing from the in-sync replicas.",
            "kafka-topics --bootstrap-server BROKERS --describe --under-replicated-partitions",
        ),
        Alert(
            "KasparUnderMinIsrPartitions",
            "kafka_server_replicamanager_underminisrpartitioncount > 0",
            "1m",
            Severity.CRITICAL,
            "{{ $value }} partitions led by {{ $labels.instance }} refuse acks=all",
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
            "Find out which brokers were down together; consider switching unclean elections off.",
            "kafka-configs --bootstrap-server BROKERS --describe --entity-type topics --entity-name TOPIC --all",
        ),
        Alert(
            "KasparIsrShrinks",
            "increase(kafka_server_replicamanager_isrshrinks_total[15m]) > 2",
            "0m",
            Severity.WARNING,
            "Followers of partitions led by {{ $labels.instance }} fall out of sync again and again",
            "Followers did not fetch up to the end of the log within replica.lag.time.max.ms: they are overloaded, "
            "pause, or their disk or network is slow.",
            "Compare request times, disk and network of the followers.",
            "kafka-replica-verification --broker-list BROKERS --topics-include TOPIC",
        ),
    ),
)
