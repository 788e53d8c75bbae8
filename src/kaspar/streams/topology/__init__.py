"""The graph of a streams program, independent of Spark, clocks and files.

topology.py      the finished topology of a program
graph.py         all steps of a program, their names and stores
node.py          a step, and how it is bound to a function that processes records
endpoints.py     sources, sinks and repartitioning
context.py       the context of a step while it processes a record
plan.py          divides the graph into sub-topologies, and each of these into map side and task side
task.py          processes one partition of a sub-topology; open_stores.py: opens its stores
punctuation.py   scheduled functions of processors
dead_letters.py  writes to the dead-letter topic
any_value.py     the serde for values without one
describe.py      the text of Kafka's TopologyDescription; picture.py: a drawing in SVG
"""
