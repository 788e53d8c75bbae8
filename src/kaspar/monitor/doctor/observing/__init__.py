"""How the doctor observes a cluster: administrative calls, metrics pages and TLS handshakes, each part independently.

The number of requests is bounded, whatever the number of topics and groups: one per broker, leader or coordinator, and
a few for the whole cluster (settings of topics in batches of a thousand).
"""
