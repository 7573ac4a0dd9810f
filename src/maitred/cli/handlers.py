"""The handlers of an app: those of every queue that a module has among its names."""

import importlib
import sys
from pathlib import Path

from maitred.errors import ConfigError
from maitred.service.handlers import Handlers
from maitred.service.queue import Queue


def load_app(module: str | None) -> dict[str, Handlers]:
    """Import a module and give its handlers by queue; none without a module.

    Raises `ConfigError` if it cannot be imported or has no queue.
    """
    if module is None:
        return {}
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded = importlib.import_module(module)
    except Exception as error:
        raise ConfigError(f"--app {module} cannot be imported: {type(error).__name__}: {error}.") from error
    queues: dict[str, Handlers] = {}
    for queue in vars(loaded).values():
        if isinstance(queue, Queue) and (queue.handlers or queue.handlers.stages):
            queues.setdefault(queue.name, Handlers()).add(queue.handlers)
    if not queues:
        raise ConfigError(f"--app {module} has no maitred.Queue with a handler or stage among its names.")
    return queues
