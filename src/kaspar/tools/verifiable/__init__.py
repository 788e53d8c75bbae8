"""kafka-verifiable-producer and kafka-verifiable-consumer: clients that print what became of each record as JSON.

System tests compare what one has sent with what the other has read.

- `producer`, `consumer`: the commands
- `running`: what they have in common
- `events`: the lines, and how the commands are ended
"""
