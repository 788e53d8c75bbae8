"""The ZooKeeper ensemble of a cluster, with the names, types and defaults of Kafka 3.9."""

from typing import Final

from kaspar.config.checks import at_least, list_of, one_of, one_of_in_any_case
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT, LIST, PASSWORD, STRING

NETTY_SOCKET: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"
NIO_SOCKET: Final = "org.apache.zookeeper.ClientCnxnSocketNIO"
_STORE_TYPES: Final = one_of_in_any_case("JKS", "PKCS12", "PEM")


class ZooKeeperSettings(Settings):
    zookeeper_connect: str | None = setting(
        STRING,
        None,
        importance=Importance.HIGH,
        doc="The ensemble that keeps the cluster's metadata, as `host1:port1,host2:port2/chroot`. The path at the end "
        "is optional, and created if it is missing. Without this setting the broker is a cluster of its own, and keeps "
        "its metadata in a file.",
    )
    zookeeper_session_timeout_ms: int = setting(
        INT,
        18_000,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long ZooKeeper waits for a sign of life before it declares a broker dead. The ensemble grants between "
        "2 and 20 of its ticks (`tickTime`, 2 s by default).",
    )
    zookeeper_connection_timeout_ms: int | None = setting(
        INT,
        None,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long a start waits for ZooKeeper. By default as long as `zookeeper.session.timeout.ms`.",
    )
    zookeeper_max_in_flight_requests: int = setting(
        INT,
        10,
        at_least(1),
        importance=Importance.HIGH,
        doc="How many requests a broker sends to ZooKeeper before it waits for a response; never more than 100.",
    )
    broker_id_generation_enable: bool = setting(
        BOOLEAN,
        True,
        doc="Whether a broker with `zookeeper.connect` and without `node.id` gets a generated id at its first start. "
        "The id is kept in the `meta.properties` of its log directories.",
    )
    reserved_broker_max_id: int = setting(INT, 1000, at_least(0), doc="Generated ids are above this one.")
    zookeeper_set_acl: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        doc="Whether only the identity that the broker has at ZooKeeper may change the nodes that it creates there, "
        "and read those with secrets. Requires a login by SASL or a key store. `zookeeper-security-migration` does the "
        "same to nodes that exist.",
    )
    zookeeper_ssl_client_enable: bool = setting(
        BOOLEAN,
        False,
        doc="Whether connections to ZooKeeper use TLS; `zookeeper.connect` then names its `secureClientPort`.",
    )
    zookeeper_clientCnxnSocket: str | None = setting(  # noqa: N815  # Kafka's name
        STRING,
        None,
        one_of(NETTY_SOCKET, NIO_SOCKET),
        doc="Accepted for compatibility. Kafka needs Netty's class for TLS; here `zookeeper.ssl.client.enable` is "
        "enough. The other class, which has no TLS, together with TLS stops the start.",
    )
    zookeeper_ssl_keystore_location: str | None = setting(
        STRING, None, doc="The broker's key and certificate for ZooKeeper, if ZooKeeper asks for one."
    )
    zookeeper_ssl_keystore_password: str | None = setting(
        PASSWORD, None, doc="The password of the key store, and of the key in it."
    )
    zookeeper_ssl_keystore_type: str | None = setting(
        STRING,
        None,
        _STORE_TYPES,
        doc="The format of the key store. By default the name says it: `.pem`, `.p12`, `.jks`.",
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        STRING,
        None,
        doc="The authorities that sign the certificates of ZooKeeper servers. Without it the system's are trusted.",
    )
    zookeeper_ssl_truststore_password: str | None = setting(PASSWORD, None, doc="The password of the trust store.")
    zookeeper_ssl_truststore_type: str | None = setting(
        STRING,
        None,
        _STORE_TYPES,
        doc="The format of the trust store. By default the name says it: `.pem`, `.p12`, `.jks`.",
    )
    zookeeper_ssl_protocol: str | None = setting(
        STRING,
        None,
        one_of("TLSv1.2", "TLSv1.3"),
        importance=Importance.LOW,
        doc="The version of TLS, unless `zookeeper.ssl.enabled.protocols` lists several. By default TLS 1.2 and 1.3. "
        "Kafka's default is TLS 1.2 alone, which ZooKeeper 3.9 does not speak by default.",
    )
    zookeeper_ssl_enabled_protocols: tuple[str, ...] = setting(
        LIST,
        (),
        list_of("TLSv1.2", "TLSv1.3"),
        importance=Importance.LOW,
        doc="The versions of TLS that may be used. By default `zookeeper.ssl.protocol`.",
    )
    zookeeper_ssl_cipher_suites: tuple[str, ...] = setting(
        LIST, (), importance=Importance.LOW, doc="The cipher suites that may be used, as in `ssl.cipher.suites`."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        STRING,
        "HTTPS",
        one_of_in_any_case("HTTPS", ""),
        importance=Importance.LOW,
        doc="How the host name of a server is checked: the name in `zookeeper.connect` must be in its certificate. "
        "Empty does not check it.",
    )
    zookeeper_ssl_crl_enable: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether revocation lists are checked. This is not supported, so `true` prevents the start.",
    )
    zookeeper_ssl_ocsp_enable: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether the Online Certificate Status Protocol is used. This is not supported, so `true` prevents the "
        "start.",
    )
    kaspar_zookeeper_sasl_jaas_config: str | None = setting(
        PASSWORD,
        None,
        importance=Importance.HIGH,
        doc="How the broker logs in to ZooKeeper, by DIGEST-MD5: `org.apache.zookeeper.server.auth.DigestLoginModule "
        'required username="..." password="...";`. Without it, the `Client` section of the JAAS file that '
        "`-Djava.security.auth.login.config` in the environment variable `KAFKA_OPTS` names, as in Kafka. Requires "
        "`kaspar[zookeeper]`.",
    )
