"""Every API at every version: each response is compared field by field with Apache Kafka's response to the same bytes.

How it works
------------
A `Scenario` (scenario.py) is plain data: the topics it needs and a list of steps. A step is a request, written as
nested
dicts with the field names of the newest version; messages.py turns it into the bytes of the version under test with
kio, which is independent of the broker's own codec. Fields that a version does not have are left out. Where a request
must name something that a broker handed out (a topic id, a producer id, a session id), a placeholder stands in the
scenario and each broker gets its own; everything else is the same bytes for both.

play.py plays a scenario at one version on one broker, on a connection of its own, and returns a transcript: the decoded
responses, or that the connection was closed, or that no response came. masks.py replaces what legitimately varies
between two brokers by a name. compare.py lists the fields in which two transcripts differ. differences.py holds the
differences that are known, each with its reason: docs/differences.md is written from it, and an entry that no longer
differs fails its test.

Rules
-----
- What one broker cannot show (replicas, elections, reassignments, a broker that stops) is in test_cluster.py: three
  brokers of each kind.
- Both brokers start fresh with the same settings and then see the same scenarios in the same order.
- The scenarios pass when both brokers are Apache Kafka (`--against kafka`), where no known difference is allowed: what
  is not deterministic in Kafka itself shows there.
- A topic's name is made of the scenario's name and the version, so scenarios do not see each other's topics.
- A mask is as narrow as it can be: a field of one message, not a message.

To add a scenario, add it to the file of its API in `scenarios/`. To see one scenario's responses, run it with `-k` and
`-s` and `KASPAR_SHOW_RESPONSES=1`.
"""
