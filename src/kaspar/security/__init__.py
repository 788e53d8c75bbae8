"""Who speaks: TLS contexts, key stores, SASL mechanisms of both sides, and the names that principals get from them.

Nothing here has a socket or an event loop. Brokers use it through network/authentication.py, clients through
client/blocking.py and client/asynchronous.py. Modules are imported where a connection needs them: a plaintext
connection loads none of it.
"""
