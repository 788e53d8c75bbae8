"""Where and how the image is kept in the store, and the operations that lead from one state to another.

    /cluster/id                      the cluster's id
    /controller/fence                who controls, in which epoch, and the number of its last transaction
    /controller/active               ephemeral: the seat of the controller, and the address at which brokers reach it
    /brokers/ids/<id>-<incarnation>  ephemeral: a broker that is up
    /brokers/incarnations/<id>       its version is the last incarnation of the broker
    /brokers/epochs                  the last known epoch and incarnation of each broker
    /brokers/directories/<id>        the log directories of a broker, also while it is down: id -> path
    /topics/<name>                   a topic: its id, settings, and its first PARTITIONS_PER_NODE partitions
    /topics/<name>/<n>               its further partitions, PARTITIONS_PER_NODE in each, from n = 1
    /deleted/<topic id>              a deleted topic whose logs are not removed yet
    /configs/<kind>/<resource>       settings of brokers, groups and client-metrics subscriptions
    /scram/<user>                    the SCRAM credentials of a user, by mechanism
    /tokens/<id>                     a delegation token, without its secret
    /quotas/<entity>                 the client quotas of an entity: client-id=<name>&user=<name>, or ip=<address>
    /producer_ids                    the first producer id that is not given out
    /acls/<bucket>                   ACLs by their ids; one node for each would be more than ZooKeeper can list
    /features                        the finalised level of each feature, and the epoch of the last change of one
    /generated_ids                   its version counts the broker ids that were generated
    /moving                          while metadata is copied into the store: the cluster's id; no broker may start
    /adopted                         the metadata log of Kafka that the store was made from (metadata/kraft/)

Values are JSON, so that people can read them. A topic's state is one node, as long as it is no giant, so that a
change writes little and a new controller loads quickly. Every change of a topic is one transaction: there is no
partly created topic to find.
"""
