"""How the image is stored: the paths and values of nodes, and the operations that change one state into another.

    /cluster/id                      the cluster's id
    /controller/fence                the controller's id, its epoch, and the number of its last transaction
    /controller/active               ephemeral: the seat of the controller, and the address at which brokers reach it
    /brokers/ids/<id>-<incarnation>  ephemeral: a broker that is up
    /brokers/incarnations/<id>       the node's version is the last incarnation of the broker
    /brokers/epochs                  the last known epoch and incarnation of each broker
    /brokers/directories/<id>        the log directories of a broker, also while it is down: id -> path
    /topics/<name>                   a topic: its id, settings, and its first PARTITIONS_PER_NODE partitions
    /topics/<name>/<n>               its further partitions, PARTITIONS_PER_NODE in each, from n = 1
    /deleted/<topic id>              a deleted topic whose logs are not removed yet
    /configs/<kind>/<resource>       settings of brokers, groups and client-metrics subscriptions
    /scram/<user>                    the SCRAM credentials of a user, by mechanism
    /tokens/<id>                     a delegation token, without its secret
    /quotas/<entity>                 the client quotas of an entity: client-id=<name>&user=<name>, or ip=<address>
    /producer_ids                    the first producer id that is not allocated
    /acls/<bucket>                   ACLs by id; one node per ACL would be more than ZooKeeper can list
    /features                        the finalised level of each feature, and the epoch of the last change
    /generated_ids                   the node's version counts the broker ids that were generated
    /moving                          the cluster's id while metadata is copied into the store; no broker may start
    /adopted                         the metadata log of Kafka that the store was created from (metadata/kraft/)

Values are JSON, so that people can read them. A topic is one node unless it is very large, so that a change writes
little and a new controller loads quickly. Topics are created and deleted in one transaction, so there are no partly
created topics.
"""
