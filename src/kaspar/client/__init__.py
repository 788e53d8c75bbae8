"""The wire client: any request by its message, and whole record batches, over a core without I/O and a blocking shell.

with Connection("localhost", 9092) as connection:
    response = connection.request(MetadataRequest(topics=None))

with Client("localhost:9092") as client:
    client.produce("topic", 0, batch)
    data = client.fetch("topic", 0, offset)
"""

from kaspar.client.blocking import Connection
from kaspar.client.cluster import Client
from kaspar.client.core import Answer, ClientCore

__all__ = ["Answer", "Client", "ClientCore", "Connection"]
