"""Administration of a cluster over the wire client, a module for each kind of thing: topics, configs, groups and so on.

    with Admin("localhost:9092") as admin:
        for name, topic in describe_topics(admin, ["orders"]).items():
            ...

A call is sent again while it fails for a reason that passes (a broker restarts, the controller moves), until the
admin's time is up. What one topic, partition or broker is refused is part of the result; what concerns the whole call
is raised as Refused.

Nothing is imported here: a command line tool loads the modules that it uses, and starts sooner.
"""
