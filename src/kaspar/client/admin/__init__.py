"""Administration of a cluster over the wire client, with one module for each kind of entity: topics, configs, groups
and so on.

    with Admin("localhost:9092") as admin:
        for name, topic in describe_topics(admin, ["orders"]).items():
            ...

A call is retried while it fails for a transient reason (a broker restarts, the controller moves), until the admin's
timeout. An error for a single topic, partition or broker is part of the result; an error of the whole call is raised as
Refused.

Nothing is imported here, so that a command line tool only loads the modules that it uses, and starts faster.
"""
