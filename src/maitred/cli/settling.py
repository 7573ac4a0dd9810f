"""Queue settings on their way from the file into the store: at the start, and again when asked to reload.

At the start a mistake ends the command. A reload must not: it is told, with the key and what is allowed, and
the settings that were there stay. A queue that the waiting jobs keep as it is does not keep the others.
"""

from pathlib import Path

import structlog

from maitred import config
from maitred.core.settings import Settings
from maitred.errors import ConfigError, MaitredError, SettingsForbidden, UnknownQueue
from maitred.service.keyring import Keys
from maitred.store.port import Status, Store, Stores

_log = structlog.get_logger()


async def settle(stores: Stores, settings: config.Config) -> None:
    """Write the settings of all queues; `SettingsForbidden` says which of them cannot change, and why."""
    private = await _private(stores)
    for name, queue in settings.queues.items():
        await _configure(stores.queue(name), queue.settings(private=private))


async def settle_again(stores: Stores, file: Path | None, now: config.Config) -> config.Config:
    """Read the file again and write what changed; give what is in force now. Never raises for a mistake."""
    try:
        new = config.load(file)
    except ConfigError as error:
        _log.error("settings not reloaded; the old ones stay", error=str(error))
        return now
    if new.store != now.store:
        _log.warning("another store needs a new start; this one stays", key="store")
    if new.server.model_copy(update={"rate": now.server.rate}) != now.server:
        _log.warning("of the server only the rate changes without a new start", key="server")
    try:
        private = await _private(stores)
    except MaitredError as error:
        _log.error("settings not reloaded; the old ones stay", error=str(error))
        return now
    for name, queue in new.queues.items():
        await _settle_again(stores.queue(name), queue.settings(private=private))
    return new.model_copy(update={"store": now.store})


async def _private(stores: Stores) -> bool:
    """Tell whether private addresses are allowed where the file does not say it: as long as no key was made.

    Until then whoever submits is on this host, and could reach them anyway.
    """
    return not await Keys(stores.keyring).any_made()


async def _settle_again(store: Store, settings: Settings) -> None:
    try:
        old = await _known(store)
        await _configure(store, settings)
        new = await store.settings()
    except MaitredError as error:
        _log.error("settings not reloaded; the old ones stay", queue=store.queue, error=str(error))
        return
    if old is None:
        _log.info("a queue was added", queue=store.queue)
    else:
        _log.info("settings reloaded", queue=store.queue, changed=new.changed(old))


async def _known(store: Store) -> Settings | None:
    try:
        return await store.settings()
    except UnknownQueue:
        return None


async def _configure(store: Store, settings: Settings) -> None:
    try:
        await store.configure(settings)
    except SettingsForbidden:
        raise SettingsForbidden(_forbidden(store.queue, await store.status(), settings)) from None


def _forbidden(queue: str, now: Status, settings: Settings) -> str:
    """Say which of the settings that are fixed while there are jobs would change, a line for each."""
    waiting = "1 job waits" if now.waiting == 1 else f"{now.waiting} jobs wait"
    old, lines = now.settings, []
    if old.order != settings.order:
        lines.append(f"order: cannot change from {old.order} to {settings.order} while {waiting}")
    if old.floor_plan != settings.floor_plan:
        lines.append("classes: their names and caps, and elastic, cannot change while jobs wait or run")
    if old.stages != settings.stages:
        change = f"from {', '.join(old.stages)} to {', '.join(settings.stages)}"
        lines.append(f"stages: cannot change {change} while there are jobs that have not ended")
    if old.ledger != settings.ledger:
        lines.append("ledger: cannot change while there are jobs that have not ended")
    return "\n".join(f"queues.{queue}.{line}." for line in lines) or str(SettingsForbidden())
