"""The wire client: any request by its message, and whole record batches, over one core without I/O and two shells.

Blocking, for Spark's tasks and for tools:

    with Connection("localhost", 9092) as connection:
        response = connection.request(MetadataRequest(topics=None))
    with Client("localhost:9092") as client:
        client.produce("topic", 0, batch)

asyncio, for brokers that ask other brokers: AsyncConnection (client/asynchronous.py) and AsyncClient
(client/async_client.py) have the same requests, awaited.
"""

from kaspar.client.blocking import Connection
from kaspar.client.cluster import Client
from kaspar.client.core import ClientCore, Response

__all__ = ["Client", "ClientCore", "Connection", "Response"]
