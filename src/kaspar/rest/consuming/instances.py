"""The proxy's consumer instances: names are unique within a group, idle instances expire, and the number is limited."""

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable
from typing import Final

from kaspar.base.clock import Clock
from kaspar.base.errors import InvalidSetting
from kaspar.base.log import get_log
from kaspar.callers.clients import KafkaClients
from kaspar.callers.identities import Identity
from kaspar.client.admin.topics import list_topics
from kaspar.rest.administration import Administration
from kaspar.rest.consuming.consumer import BufferedConsumer, Mode
from kaspar.rest.consuming.instance import ConsumerInstance, TurnThreads
from kaspar.rest.consuming.options import InstanceOptions
from kaspar.rest.consuming.patterns import TopicPattern
from kaspar.rest.errors import (
    CONSUMER_ALREADY_EXISTS,
    CONSUMER_INSTANCE_NOT_FOUND,
    INVALID_CONSUMER_CONFIG,
    TOO_MANY_REQUESTS,
    RestError,
)
from kaspar.rest.settings import RestSettings

log = get_log(__name__)

_EXPIRY_S: Final = 1.0
_PATTERN_S: Final = 10.0
_CLOSING_S: Final = 10.0


class ConsumerInstances:
    def __init__(
        self, settings: RestSettings, clients: KafkaClients, administration: Administration, clock: Clock
    ) -> None:
        self._settings = settings
        self._clients = clients
        self._administration = administration
        self._clock = clock
        threads = settings.consumer_threads
        self._threads = TurnThreads(settings.kaspar_consumer_instances if threads == -1 else threads)
        self._instances: dict[tuple[str, str], ConsumerInstance | None] = {}
        """The value is None while the instance is being created."""
        self._expiring: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._expiring = asyncio.create_task(self._expire())

    async def create(
        self, identity: Identity, group: str, name: str | None, options: InstanceOptions
    ) -> ConsumerInstance:
        """Raises RestError."""
        if name is None:
            name = "-".join(filter(None, ("rest-consumer", self._settings.id, str(uuid.uuid4()))))
        if (group, name) in self._instances:
            raise RestError(CONSUMER_ALREADY_EXISTS)
        if len(self._instances) >= self._settings.kaspar_consumer_instances:
            raise RestError(
                TOO_MANY_REQUESTS,
                f"There are already {len(self._instances)} consumer instances (kaspar.consumer.instances).",
            )
        self._instances[group, name] = None
        try:
            consumer = await self._threads.run(lambda: self._open(identity, options))
        except BaseException:
            del self._instances[group, name]
            raise
        timeout_ms = self._settings.consumer_instance_timeout_ms
        instance = ConsumerInstance(group, name, identity, options, consumer, self._threads, self._clock, timeout_ms)
        self._instances[group, name] = instance
        return instance

    def _open(self, identity: Identity, options: InstanceOptions) -> BufferedConsumer:
        from confluent_kafka import KafkaException

        try:
            return BufferedConsumer(lambda on_error: self._clients.new_consumer(identity, options.properties, on_error))
        except InvalidSetting as problem:
            raise RestError(INVALID_CONSUMER_CONFIG, str(problem)) from None
        except KafkaException as problem:
            raise RestError(INVALID_CONSUMER_CONFIG, problem.args[0].str()) from None

    def get(self, identity: Identity, group: str, name: str) -> ConsumerInstance:
        """The instance, for a request of its owner. For other identities it does not exist. Raises RestError."""
        instance = self._instances.get((group, name))
        if instance is None or instance.owner != identity or instance.is_expired:
            raise RestError(CONSUMER_INSTANCE_NOT_FOUND)
        instance.touch()
        return instance

    async def delete(self, instance: ConsumerInstance) -> None:
        """Returns once the instance has left its group, or after a time limit."""
        if self._instances.get((instance.group, instance.name)) is not instance:
            raise RestError(CONSUMER_INSTANCE_NOT_FOUND)
        del self._instances[instance.group, instance.name]
        await self._close(instance)

    async def subscribe_to_pattern(self, instance: ConsumerInstance, pattern: TopicPattern) -> None:
        """Subscribe to the matching topics. `refresh` adds topics that are created later."""
        topics = pattern.matching(await self._topics(instance.owner))
        await instance.use(lambda consumer: consumer.subscribe(topics, Mode.PATTERN))
        instance.pattern = pattern
        instance.pattern_checked_at = self._clock.monotonic()

    async def refresh(self, instance: ConsumerInstance) -> None:
        """Update the subscription of an instance with a pattern to the topics that match now."""
        if instance.pattern is None or self._clock.monotonic() < instance.pattern_checked_at + _PATTERN_S:
            return
        instance.pattern_checked_at = self._clock.monotonic()
        topics = instance.pattern.matching(await self._topics(instance.owner))

        def update(consumer: BufferedConsumer) -> None:
            if consumer.mode is Mode.PATTERN and set(consumer.subscription()) != set(topics):
                consumer.subscribe(topics, Mode.PATTERN)

        await instance.use(update)

    async def _topics(self, identity: Identity) -> list[str]:
        return await self._administration.call(identity, lambda admin: list_topics(admin, include_internal=False))

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRY_S)
            self.expire_idle()

    def expire_idle(self) -> None:
        """Delete the instances that were unused for `consumer.instance.timeout.ms`."""
        for key, instance in list(self._instances.items()):
            if instance is not None and instance.is_expired:
                log.info("a consumer instance expired", group=instance.group, instance=instance.name)
                del self._instances[key]
                closing = asyncio.create_task(self._close(instance))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    async def _close(self, instance: ConsumerInstance) -> None:
        done = _in_daemon_thread(await instance.close())
        try:
            await asyncio.wait_for(asyncio.shield(done), _CLOSING_S)
        except TimeoutError:
            log.warning("a consumer instance is slow to leave its group", group=instance.group, instance=instance.name)

    async def close(self) -> None:
        if self._expiring is not None:
            self._expiring.cancel()
            await asyncio.gather(self._expiring, return_exceptions=True)
        instances = [each for each in self._instances.values() if each is not None]
        self._instances.clear()
        await asyncio.gather(*(self._close(each) for each in instances), *self._closing)
        self._threads.close()


def _in_daemon_thread(function: Callable[[], None]) -> asyncio.Future[None]:
    """Run the function in a daemon thread: a pool's thread would keep the process alive while a broker does not
    respond."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def run() -> None:
        try:
            function()
        except Exception:
            log.exception("a consumer instance could not be closed")
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing awaits the future
                loop.call_soon_threadsafe(finish)

    threading.Thread(target=run, name="rest-consumer-close", daemon=True).start()
    return done
