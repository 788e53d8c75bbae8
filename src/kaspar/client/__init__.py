"""The wire client: sends any request as a message, and whole record batches. It has one core without I/O, and a
blocking and an asyncio shell.

Blocking, for Spark's tasks and for tools:

    with Connection("localhost", 9092) as connection:
        response = connection.request(MetadataRequest(topics=None))
    with Client("localhost:9092") as client:
        client.produce("topic", 0, batch)

asyncio, for requests between brokers: AsyncConnection (client/asynchronous.py) and AsyncClient (client/async_client.py)
have the same methods as coroutines.
"""

from kaspar.client.blocking import Connection
from kaspar.client.cluster import Client
from kaspar.client.core import ClientCore, Response

__all__ = ["Client", "ClientCore", "Connection", "Response"]
