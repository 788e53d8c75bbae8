"""The broker's settings for transactions."""

from dataclasses import dataclass

from kaspar.config import BrokerConfig


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    max_timeout_ms: int
    """The longest timeout that InitProducerId may request."""
    expiration_ms: int
    """How long an unused id is kept."""
    expiry_interval_ms: int
    """How often unused ids are looked for."""
    two_phase_commit: bool
    """Whether a transaction may wait for its owner's decision, without a timeout."""
    prepared_max_age_ms: int
    """The longest time that it may wait, from its start."""

    @classmethod
    def of(cls, config: BrokerConfig) -> "CoordinatorSettings":
        return cls(
            max_timeout_ms=config.transaction_max_timeout_ms,
            expiration_ms=config.transactional_id_expiration_ms,
            expiry_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
            two_phase_commit=config.transaction_two_phase_commit_enable,
            prepared_max_age_ms=config.kaspar_transaction_prepared_max_age_ms,
        )
