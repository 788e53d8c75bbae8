"""How the doctor observes a cluster: administrative calls, metrics pages and TLS handshakes, each part on its own.

An observation has a bounded number of requests, whatever the number of topics and groups: one for each broker, leader
or coordinator, and a few for all (settings of topics in batches of a thousand).
"""
