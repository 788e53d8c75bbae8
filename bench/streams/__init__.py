"""`make bench-streams`: streams programs compared with Kafka Streams, Quix Streams and Faust, on one broker.

cases.py      what is compared, and its goals
programs.py   a program of each kind as a process
load.py       fills the topics, and detects when a program has processed all of it
ours.py       the programs in kaspar.streams; peers/: the same for the others
"""
