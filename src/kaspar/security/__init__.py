"""Authentication and encryption: TLS contexts, key stores, SASL mechanisms of both sides, and the names of principals.

Nothing here has a socket or an event loop. Brokers use it through network/authentication.py, clients through
client/blocking.py and client/asynchronous.py. Modules are imported where a connection needs them: a plaintext
connection loads none of them.
"""
