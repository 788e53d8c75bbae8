"""How a broker authenticates clients, and itself to other brokers: listeners with TLS and SASL, stored credentials."""
