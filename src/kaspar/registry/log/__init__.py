"""The topic `_schemas`: how the registry creates, follows and writes it.

topic.py      creates the topic, or checks the one that is there
position.py   what a fetch response means for a reader of the whole log: pure
follower.py   the task that reads the log into the state
producer.py   one transactional producer for each registry group
schema_log.py append and read back; leading and stepping down
"""
