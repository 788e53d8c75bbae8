"""One leader among the instances of a registry, elected over the classic group protocol as Confluent's are.

identity.py   what members say about themselves, and the result: Confluent's JSON
choice.py     which member leads: pure
membership.py the group protocol of one member: responses in, requests out, no I/O
elector.py    the task that runs it
"""
