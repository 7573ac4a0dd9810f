"""What the workers of one process stand on: the host, and what more of it programs can see."""

from typing import NamedTuple

from maitred import config
from maitred.config.values import enforced_names
from maitred.errors import ConfigError
from maitred.service.host import Host, refuse_less, this_host


class Premises(NamedTuple):
    """The host as far as the settings use it, and more directories that programs can read."""

    host: Host
    visible: tuple[str, ...]

    def __str__(self) -> str:
        return f"Commands are kept by: {', '.join(self.host.enforces())}"


def look_at(settings: config.Config, require: str | None) -> Premises:
    """Look at the host; `ConfigError` if it gives less than is required."""
    worker = settings.worker
    host = this_host() if worker.isolate else this_host().plain()
    refuse_less(worker.require if require is None else _required(require), host)
    return Premises(host, worker.visible)


def _required(text: str) -> tuple[str, ...]:
    try:
        return enforced_names(text)
    except ValueError as error:
        raise ConfigError(f"--require: {error}.") from None
