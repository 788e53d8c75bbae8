"""kafka-verifiable-producer and kafka-verifiable-consumer: clients that print the outcome of each record as JSON.

System tests compare what one has sent with what the other has read.

- `producer`, `consumer`: the commands
- `running`: the common part of both
- `events`: the lines of output, and the handling of SIGTERM
"""
