"""One process that hosts the HTTP services: schema registry, REST proxy, monitor and console."""
