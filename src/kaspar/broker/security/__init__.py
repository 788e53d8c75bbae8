"""How a broker knows its clients, and other brokers know it: listeners with TLS and SASL, and stored credentials."""
