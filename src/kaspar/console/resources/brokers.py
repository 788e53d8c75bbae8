"""Brokers: listed, with their log directories, settings and loggers. The broker `default` stands for all brokers."""

from functools import partial

from kaspar.acls.acl import AclOperation
from kaspar.callers.permissions import cluster_operations
from kaspar.client.admin.cluster import describe_with_fenced
from kaspar.client.admin.configs import ConfigResource
from kaspar.console import configs
from kaspar.console.brokers.listing import BrokerRow, broker_rows
from kaspar.console.brokers.log_dirs import LogDirView, read_log_dirs
from kaspar.console.configs import ConfigChanges, ConfigView
from kaspar.console.http.endpoint import Call, changes, reads, watched


@reads("/api/brokers")
async def brokers(call: Call) -> list[BrokerRow]:
    return await _rows(call)


@watched("brokers")
async def watched_brokers(call: Call, _: str) -> list[BrokerRow]:
    return await _rows(call)


async def _rows(call: Call) -> list[BrokerRow]:
    cluster = await call.shared("brokers", describe_with_fenced)
    if call.context.propagates and AclOperation.DESCRIBE not in await call.shared("operations", cluster_operations):
        return broker_rows(cluster, None, None)
    monitor = call.context.monitor
    return broker_rows(cluster, monitor.cluster, monitor.rates)


@reads("/api/brokers/{broker}/log-dirs")
async def log_dirs(call: Call) -> list[LogDirView]:
    broker_id = call.path_number("broker")
    return await call.shared(("log dirs", broker_id), partial(read_log_dirs, broker_id=broker_id))


@reads("/api/brokers/{broker}/settings")
async def settings(call: Call) -> tuple[ConfigView, ...]:
    return await _read(call, configs.broker_resource(call.path["broker"]))


@changes("PUT", "/api/brokers/{broker}/settings", action="change settings", resource="broker {broker}")
async def change_settings(call: Call) -> None:
    await _change(call, configs.broker_resource(call.path["broker"]))


@reads("/api/brokers/{broker}/loggers")
async def loggers(call: Call) -> tuple[ConfigView, ...]:
    return await _read(call, configs.logger_resource(call.path["broker"]))


@changes("PUT", "/api/brokers/{broker}/loggers", action="change loggers", resource="broker {broker}")
async def change_loggers(call: Call) -> None:
    await _change(call, configs.logger_resource(call.path["broker"]))


async def _read(call: Call, resource: ConfigResource) -> tuple[ConfigView, ...]:
    return await call.shared(("settings", resource), partial(configs.read_configs, resource=resource))


async def _change(call: Call, resource: ConfigResource) -> None:
    body = await call.body(ConfigChanges)
    call.note(str(body))
    await call.ask(partial(configs.change_configs, resource=resource, changes=body))


ENDPOINTS = (brokers, log_dirs, settings, change_settings, loggers, change_loggers)
CHANNELS = (watched_brokers,)
