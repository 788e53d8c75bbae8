"""Encryption, authentication and authorization."""

from kaspar.config.checks import at_least, between, one_of, one_of_in_any_case
from kaspar.config.declaration import Importance, Scope, Settings, setting
from kaspar.config.kinds import BOOLEAN, CLASS, DOUBLE, INT, LIST, LONG, PASSWORD, SHORT, STRING
from kaspar.config.reasons import KERBEROS_RENEWS, NO_PLUGINS, NO_QUORUM, NO_TOKEN_REQUESTS, OPENSSL_DECIDES
from kaspar.config.units import DAY_MS, HOUR_MS, KIB


class SecuritySettings(Settings):
    principal_builder_class: str = setting(
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        scope=Scope.PER_BROKER,
        not_honoured=NO_PLUGINS,
        doc="The class that creates the principal of a connection.",
    )
    connections_max_reauth_ms: int = setting(
        LONG, 0, doc="How long a connection may live before it must authenticate again. 0 sets no limit."
    )
    security_providers: str | None = setting(
        STRING,
        None,
        importance=Importance.LOW,
        not_honoured=NO_PLUGINS,
        doc="Classes that provide security algorithms.",
    )
    delegation_token_secret_key: str | None = setting(PASSWORD, None, doc="The key that signs delegation tokens.")
    delegation_token_max_lifetime_ms: int = setting(
        LONG, 7 * DAY_MS, at_least(1), doc="How long a delegation token can be renewed."
    )
    delegation_token_expiry_time_ms: int = setting(
        LONG, DAY_MS, at_least(1), doc="How long a delegation token is valid before it must be renewed."
    )
    delegation_token_expiry_check_interval_ms: int = setting(
        LONG,
        HOUR_MS,
        at_least(1),
        importance=Importance.LOW,
        not_honoured="An expired token is rejected at once, and removed when the next one is created.",
        doc="How often expired delegation tokens are removed.",
    )
    ssl_protocol: str = setting(
        STRING, "TLSv1.3", scope=Scope.PER_BROKER, not_honoured=OPENSSL_DECIDES, doc="The TLS protocol."
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        LIST,
        (
            "TLSv1.2",
            "TLSv1.3",
        ),
        scope=Scope.PER_BROKER,
        doc="The TLS protocols a connection may use.",
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        LIST, (), scope=Scope.PER_BROKER, doc="The cipher suites a connection may use."
    )
    ssl_client_auth: str = setting(
        STRING,
        "none",
        one_of("required", "requested", "none"),
        scope=Scope.PER_BROKER,
        doc="Whether clients must show a certificate.",
    )
    ssl_provider: str | None = setting(
        STRING, None, scope=Scope.PER_BROKER, not_honoured=OPENSSL_DECIDES, doc="The provider of TLS."
    )
    ssl_key_password: str | None = setting(
        PASSWORD, None, scope=Scope.PER_BROKER, doc="The password of the private key."
    )
    ssl_keystore_type: str = setting(STRING, "JKS", scope=Scope.PER_BROKER, doc="The format of the key store.")
    ssl_keystore_location: str | None = setting(STRING, None, scope=Scope.PER_BROKER, doc="The file of the key store.")
    ssl_keystore_password: str | None = setting(
        PASSWORD, None, scope=Scope.PER_BROKER, doc="The password of the key store."
    )
    ssl_keystore_key: str | None = setting(PASSWORD, None, scope=Scope.PER_BROKER, doc="The private key, as text.")
    ssl_keystore_certificate_chain: str | None = setting(
        PASSWORD, None, scope=Scope.PER_BROKER, doc="The certificate chain, as text."
    )
    ssl_truststore_type: str = setting(STRING, "JKS", scope=Scope.PER_BROKER, doc="The format of the trust store.")
    ssl_truststore_location: str | None = setting(
        STRING, None, scope=Scope.PER_BROKER, doc="The file of the trust store."
    )
    ssl_truststore_password: str | None = setting(
        PASSWORD, None, scope=Scope.PER_BROKER, doc="The password of the trust store."
    )
    ssl_truststore_certificates: str | None = setting(
        PASSWORD, None, scope=Scope.PER_BROKER, doc="The trusted certificates, as text."
    )
    ssl_keymanager_algorithm: str = setting(
        STRING, "SunX509", scope=Scope.PER_BROKER, not_honoured=OPENSSL_DECIDES, doc="The algorithm of the key manager."
    )
    ssl_trustmanager_algorithm: str = setting(
        STRING, "PKIX", scope=Scope.PER_BROKER, not_honoured=OPENSSL_DECIDES, doc="The algorithm of the trust manager."
    )
    ssl_endpoint_identification_algorithm: str = setting(
        STRING,
        "https",
        importance=Importance.LOW,
        scope=Scope.PER_BROKER,
        doc="How the host name of a peer is checked. Empty does not check it.",
    )
    ssl_secure_random_implementation: str | None = setting(
        STRING,
        None,
        importance=Importance.LOW,
        scope=Scope.PER_BROKER,
        not_honoured=OPENSSL_DECIDES,
        doc="The source of random numbers.",
    )
    ssl_principal_mapping_rules: str = setting(
        STRING, "DEFAULT", importance=Importance.LOW, doc="Rules that turn a certificate's name into a principal."
    )
    ssl_engine_factory_class: str | None = setting(
        CLASS,
        None,
        importance=Importance.LOW,
        scope=Scope.PER_BROKER,
        not_honoured=NO_PLUGINS,
        doc="The class that creates TLS engines.",
    )
    ssl_allow_dn_changes: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a new certificate may have another name than the old one.",
    )
    ssl_allow_san_changes: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a new certificate may have other alternative names than the old one.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        LIST, ("GSSAPI",), scope=Scope.PER_BROKER, doc="The SASL mechanisms that are served."
    )
    sasl_mechanism_inter_broker_protocol: str = setting(
        STRING, "GSSAPI", scope=Scope.PER_BROKER, doc="The SASL mechanism between brokers."
    )
    sasl_mechanism_controller_protocol: str = setting(
        STRING,
        "GSSAPI",
        importance=Importance.HIGH,
        not_honoured=NO_QUORUM,
        doc="The SASL mechanism towards controllers.",
    )
    sasl_jaas_config: str | None = setting(
        PASSWORD, None, scope=Scope.PER_BROKER, doc="The login context, in JAAS form."
    )
    sasl_server_callback_handler_class: str | None = setting(
        CLASS,
        None,
        doc="The class that validates credentials. Only OAuthBearerUnsecuredValidatorCallbackHandler is supported, "
        "with which OAUTHBEARER accepts unsigned tokens.",
    )
    sasl_client_callback_handler_class: str | None = setting(
        CLASS, None, not_honoured=NO_PLUGINS, doc="The class that provides credentials when the broker is the client."
    )
    sasl_login_class: str | None = setting(CLASS, None, not_honoured=NO_PLUGINS, doc="The class that logs in.")
    sasl_login_callback_handler_class: str | None = setting(
        CLASS, None, not_honoured=NO_PLUGINS, doc="The class that provides credentials at login."
    )
    sasl_login_connect_timeout_ms: int | None = setting(
        INT,
        None,
        importance=Importance.LOW,
        not_honoured=NO_TOKEN_REQUESTS,
        doc="How long a login waits for its connection.",
    )
    sasl_login_read_timeout_ms: int | None = setting(
        INT,
        None,
        importance=Importance.LOW,
        not_honoured=NO_TOKEN_REQUESTS,
        doc="How long a login waits for a response.",
    )
    sasl_login_retry_backoff_ms: int = setting(
        LONG, 100, importance=Importance.LOW, not_honoured=NO_TOKEN_REQUESTS, doc="How long a failed login waits."
    )
    sasl_login_retry_backoff_max_ms: int = setting(
        LONG, 10_000, importance=Importance.LOW, not_honoured=NO_TOKEN_REQUESTS, doc="The longest a failed login waits."
    )
    sasl_login_refresh_window_factor: float = setting(
        DOUBLE,
        0.8,
        scope=Scope.PER_BROKER,
        not_honoured=NO_TOKEN_REQUESTS,
        doc="The share of a credential's life after which it is refreshed.",
    )
    sasl_login_refresh_window_jitter: float = setting(
        DOUBLE,
        0.05,
        scope=Scope.PER_BROKER,
        not_honoured=NO_TOKEN_REQUESTS,
        doc="How much that share varies at random.",
    )
    sasl_login_refresh_min_period_seconds: int = setting(
        SHORT, 60, scope=Scope.PER_BROKER, not_honoured=NO_TOKEN_REQUESTS, doc="The least time between two refreshes."
    )
    sasl_login_refresh_buffer_seconds: int = setting(
        SHORT,
        300,
        scope=Scope.PER_BROKER,
        not_honoured=NO_TOKEN_REQUESTS,
        doc="The time kept free before a credential expires.",
    )
    sasl_server_max_receive_size: int = setting(INT, 512 * KIB, doc="The largest SASL message that is accepted.")
    sasl_kerberos_service_name: str | None = setting(
        STRING,
        None,
        scope=Scope.PER_BROKER,
        doc="The first component of the brokers' Kerberos principals: for `kafka/host@REALM` it is `kafka`.",
    )
    sasl_kerberos_kinit_cmd: str = setting(
        STRING,
        "/usr/bin/kinit",
        scope=Scope.PER_BROKER,
        not_honoured=KERBEROS_RENEWS,
        doc="The path of the kinit command.",
    )
    sasl_kerberos_ticket_renew_window_factor: float = setting(
        DOUBLE,
        0.8,
        scope=Scope.PER_BROKER,
        not_honoured=KERBEROS_RENEWS,
        doc="The share of a ticket's life after which it is renewed.",
    )
    sasl_kerberos_ticket_renew_jitter: float = setting(
        DOUBLE, 0.05, scope=Scope.PER_BROKER, not_honoured=KERBEROS_RENEWS, doc="How much that share varies at random."
    )
    sasl_kerberos_min_time_before_relogin: int = setting(
        LONG,
        60_000,
        scope=Scope.PER_BROKER,
        not_honoured=KERBEROS_RENEWS,
        doc="The least time between two logins, in milliseconds.",
    )
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = setting(
        LIST,
        ("DEFAULT",),
        scope=Scope.PER_BROKER,
        doc="Rules that turn a Kerberos principal into a short name. The first that applies decides.",
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="Where tokens are fetched."
    )
    sasl_oauthbearer_scope: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The scope that is requested."
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The client's id for the client-credentials grant."
    )
    sasl_oauthbearer_client_credentials_client_secret: str | None = setting(
        PASSWORD, None, not_honoured=NO_TOKEN_REQUESTS, doc="The client's secret for the client-credentials grant."
    )
    sasl_oauthbearer_assertion_algorithm: str = setting(
        STRING,
        "RS256",
        one_of_in_any_case("ES256", "RS256"),
        not_honoured=NO_TOKEN_REQUESTS,
        doc="The algorithm that signs an assertion.",
    )
    sasl_oauthbearer_assertion_claim_aud: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The audience of an assertion."
    )
    sasl_oauthbearer_assertion_claim_exp_seconds: int = setting(
        INT,
        300,
        between(0, 86_400),
        importance=Importance.LOW,
        not_honoured=NO_TOKEN_REQUESTS,
        doc="How long an assertion is valid.",
    )
    sasl_oauthbearer_assertion_claim_iss: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The issuer of an assertion."
    )
    sasl_oauthbearer_assertion_claim_jti_include: bool = setting(
        BOOLEAN, False, not_honoured=NO_TOKEN_REQUESTS, doc="Whether an assertion carries a unique id."
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = setting(
        INT,
        60,
        between(0, 3600),
        importance=Importance.LOW,
        not_honoured=NO_TOKEN_REQUESTS,
        doc="How far before now an assertion is valid.",
    )
    sasl_oauthbearer_assertion_claim_sub: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The subject of an assertion."
    )
    sasl_oauthbearer_assertion_file: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The file with a ready assertion."
    )
    sasl_oauthbearer_assertion_private_key_file: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The file with the key that signs assertions."
    )
    sasl_oauthbearer_assertion_private_key_passphrase: str | None = setting(
        PASSWORD, None, not_honoured=NO_TOKEN_REQUESTS, doc="The password of that key."
    )
    sasl_oauthbearer_assertion_template_file: str | None = setting(
        STRING, None, not_honoured=NO_TOKEN_REQUESTS, doc="The file with the form of an assertion."
    )
    sasl_oauthbearer_jwt_retriever_class: str = setting(
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        not_honoured=NO_PLUGINS,
        doc="The class that fetches tokens.",
    )
    sasl_oauthbearer_jwt_validator_class: str = setting(
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        not_honoured=NO_PLUGINS,
        doc="The class that checks tokens.",
    )
    sasl_oauthbearer_scope_claim_name: str = setting(
        STRING, "scope", importance=Importance.LOW, doc="The name of the scope's claim."
    )
    sasl_oauthbearer_sub_claim_name: str = setting(
        STRING, "sub", importance=Importance.LOW, doc="The name of the subject's claim."
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        STRING, None, doc="Where the keys that sign tokens are fetched."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        LONG, HOUR_MS, importance=Importance.LOW, doc="How often those keys are fetched."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(
        LONG,
        100,
        importance=Importance.LOW,
        not_honoured="Keys are fetched at most every five seconds.",
        doc="How long a failed fetch of keys waits.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(
        LONG,
        10_000,
        importance=Importance.LOW,
        not_honoured="Keys are fetched at most every five seconds.",
        doc="The longest a failed fetch of keys waits.",
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        INT, 30, importance=Importance.LOW, doc="How far clocks may differ."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = setting(
        LIST, (), importance=Importance.LOW, doc="The audience a token must have."
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(
        STRING, None, importance=Importance.LOW, doc="The issuer a token must have."
    )
