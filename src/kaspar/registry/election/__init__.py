"""Elects one leader among the instances of a registry, over the classic group protocol as Confluent's registry does.

identity.py   the members' metadata and the assignment: Confluent's JSON
choice.py     chooses the leader: pure
membership.py the group protocol of one member: responses in, requests out, no I/O
elector.py    the task that runs it
"""
