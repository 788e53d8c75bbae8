"""The graph of a streams program, free of Spark, clocks and files.

node.py       a step, and how steps are joined to closures that pass records on
context.py    what a step may use while it processes a record
graph.py      all steps of a program, their names and stores
plan.py       the graph divided into sub-topologies, and each of these into what runs before and after the shuffle
task.py       one partition of a sub-topology at work
describe.py   a topology in the words of Kafka's TopologyDescription, and as a picture
"""
