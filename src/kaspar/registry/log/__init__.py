"""The topic `_schemas`: how the registry creates, follows and writes it.

topic.py      creates the topic, or checks an existing one
position.py   interprets fetch responses for a reader of the whole log: pure
follower.py   the task that reads the log into the state
producer.py   the transactional producer, one per registry group
writer.py     appends and reads back; leads and steps down
schema_log.py the log as the service uses it, bound to one state
"""
