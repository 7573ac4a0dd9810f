"""Every error that Maitred raises, in one tree.

MaitredError
├── ConfigError
└── StoreError
    └── EmbeddedError
        └── DataDirectoryInUse
"""


class MaitredError(Exception):
    """Something that Maitred was asked for cannot be done."""

    def __str__(self) -> str:
        """Give the message, or the first line of the class's docstring where none was given."""
        return super().__str__() or (type(self).__doc__ or type(self).__name__).partition("\n")[0]


class ConfigError(MaitredError):
    """The settings have a mistake; each line of the text names a key and what is allowed there."""


class StoreError(MaitredError):
    """The store cannot be used."""


class EmbeddedError(StoreError):
    """The embedded server cannot be started or does not answer."""


class DataDirectoryInUse(EmbeddedError):
    """Another process owns this data directory; `pid` names it where it is known."""

    def __init__(self, message: str = "", *, pid: int | None = None) -> None:
        super().__init__(*([message] if message else []))
        self.pid = pid
