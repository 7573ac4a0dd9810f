"""The tables of `maitred.toml`, typed: which keys there are, their defaults, and what must fit together."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from maitred import address, duration, size
from maitred.config.values import (
    MOST_RUNNING,
    between,
    budget,
    class_name,
    count,
    directories,
    enforced_names,
    ledger_url,
    level_limit,
    profile_names,
    queue_name,
    show_limit,
    stage_names,
)
from maitred.core.classes import WHOLE, DurationClass, Limit
from maitred.core.settings import Settings
from maitred.core.stages import PROVISIONING

MOST_CLASSES = 16
_default = Settings()
Mistake = tuple[tuple[str, ...], str]


class _Table(BaseModel):
    """A table of the file: fixed once read, and without a key that nobody knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreConfig(_Table):
    """Where the queues are kept; without a `url`, on the embedded server."""

    url: str | None = None
    durability: Literal["always", "everysec"] = "everysec"

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str | None) -> str | None:
        return None if url is None else address.check(url)


class DelayConfig(_Table):
    """The delay policy: how long a job waits for each recent submission of the same submitter."""

    per_recent: Annotated[int, between("0s", "30d")]
    window: Annotated[int, between("1s", "30d")] = _default.window


class MaxWaitingConfig(_Table):
    """How many jobs may wait: in the whole queue, and of one submitter."""

    total: Annotated[int, count(1, 100_000_000)] = _default.max_total
    per_submitter: Annotated[int, count(1, 100_000_000)] = _default.max_per_submitter


class ClassConfig(_Table):
    """A duration class: how long its jobs may run, and how many of it and of longer ones at once."""

    cap: Annotated[int, between("100ms", "30d")]
    limit: Annotated[Limit | None, PlainValidator(level_limit)] = None


class BackoffConfig(_Table):
    """How long a job waits after a transient failure: at first, and at most, as the wait doubles."""

    first: Annotated[int, between("10ms", "1d")] = _default.backoff
    most: Annotated[int, between("10ms", "30d")] = _default.most_backoff

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.most < self.first:
            says = (
                f"{duration.show(self.most)} is not allowed; allowed is {duration.show(self.first)} or more"
            )
            _refuse([(("most",), f"{says}, which is `first`")])
        return self


class InteractiveConfig(_Table):
    """Interactive jobs: how long without a word, how long in all, and how many of one submitter."""

    idle: Annotated[int, between("1s", "30d")] = _default.interactive_idle
    cap: Annotated[int, between("1s", "30d")] = _default.interactive_cap
    per_submitter: Annotated[int, count(0, 1_000)] = _default.interactive_per_submitter


class SandboxConfig(_Table):
    """What a command and all that it starts may use; `cpu` is of each process, by default without a bound."""

    memory: Annotated[int, between("16MiB", "1TiB", size.parse)] = _default.sandbox_memory
    processes: Annotated[int, count(1, 100_000)] = _default.sandbox_processes
    file_size: Annotated[int, between("4KiB", "1TiB", size.parse)] = _default.sandbox_file_size
    open_files: Annotated[int, count(16, 1_000_000)] = _default.sandbox_open_files
    disk: Annotated[int, between("64KiB", "10TiB", size.parse)] = _default.sandbox_disk
    cpu: Annotated[int, between("1s", "30d")] | None = None
    network: bool = _default.sandbox_network


class ServerConfig(_Table):
    """A server of this host: how many calls a second each key may make, on and on; null is no limit."""

    rate: Annotated[int, count(1, 1_000_000)] | None = None


class WorkerConfig(_Table):
    """Workers of this host: what they must enforce, and what more programs can see of it.

    Without `isolate` programs are trusted: they run as the worker itself, with limits only.
    """

    require: Annotated[tuple[str, ...], PlainValidator(enforced_names)] = ()
    visible: Annotated[tuple[str, ...], PlainValidator(directories)] = ()
    isolate: bool = True


class LogConfig(_Table):
    """How the commands that keep the house open write their logs: for people, or a JSON object a line."""

    format: Literal["text", "json"] = "text"


class QueueConfig(_Table):
    """One queue's settings. All durations are microseconds once read."""

    order: Literal["newest-first", "oldest-first"] = _default.order
    delay: DelayConfig | None = None
    eager: bool = _default.eager
    time_limit: Annotated[int, between("100ms", "30d")] = _default.time_limit
    lease: Annotated[int, between("1s", "1h")] = _default.lease
    attempts: Annotated[int, count(1, 100)] = _default.attempts
    grace: Annotated[int, between("0s", "1h")] = _default.grace
    kill_after: Annotated[int, between("0s", "1m")] = _default.kill_after
    retention: Annotated[int, between("1s", "3650d")] = _default.retention
    max_delay: Annotated[int, between("0s", "3650d")] = _default.max_delay
    max_waiting: MaxWaitingConfig = MaxWaitingConfig()
    max_body: Annotated[int, count(1, 64 << 20)] = _default.max_body
    output: Annotated[int, between("0B", "64MiB", size.parse)] = _default.output_limit
    artifacts: Annotated[int, between("0B", "256MiB", size.parse)] = _default.artifact_limit
    stages: Annotated[tuple[str, ...], PlainValidator(stage_names)] = _default.stages
    space: Annotated[int, PlainValidator(budget)] | None = None
    profiles: Annotated[tuple[str, ...], PlainValidator(profile_names)] | None = None
    backoff: BackoffConfig = BackoffConfig()
    ledger: Annotated[str, AfterValidator(ledger_url)] | None = None
    layout: Literal["seed", "mrt-zk"] = _default.layout
    elastic: Literal["borrow", "squeeze"] = _default.elastic
    classes: dict[Annotated[str, AfterValidator(class_name)], ClassConfig] | None = None
    interactive: InteractiveConfig = InteractiveConfig()
    sandbox: SandboxConfig = SandboxConfig()
    private_addresses: bool | None = None

    @field_validator("classes", mode="after")
    @classmethod
    def _in_order(cls, classes: dict[str, ClassConfig] | None) -> dict[str, ClassConfig] | None:
        if classes is not None:
            _refuse(_misplaced(classes))
        return classes

    @model_validator(mode="after")
    def _one_kind_of_limit(self) -> Self:
        if self.classes and "time_limit" in self.model_fields_set:
            says = "it would have no effect: the caps of the classes hold; leave out one of the two"
            _refuse([(("time_limit",), says)])
        return self

    @model_validator(mode="after")
    def _what_belongs_together(self) -> Self:
        _refuse(self._lone())
        return self

    def _lone(self) -> Iterator[Mistake]:
        """Find settings that would have no effect without another one."""
        if self.space is not None and PROVISIONING not in self.stages:
            yield ("space",), f"it needs a stage {PROVISIONING!r}, where jobs get it; stages has none"
        if self.ledger is None and "layout" in self.model_fields_set:
            yield ("layout",), "it is the layout of a ledger's tree, and would have no effect without ledger"

    def settings(self, *, private: bool = False) -> Settings:
        """Give the settings in the form that the rules use; the last class's cap is the time limit.

        `private` is whether private addresses are allowed where the file does not say.
        """
        classes = tuple(_levels(self.classes or {}))
        return Settings(
            order=self.order,
            eager=self.eager,
            per_recent=self.delay.per_recent if self.delay else _default.per_recent,
            window=self.delay.window if self.delay else _default.window,
            time_limit=classes[-1].cap if classes else self.time_limit,
            lease=self.lease,
            attempts=self.attempts,
            grace=self.grace,
            kill_after=self.kill_after,
            retention=self.retention,
            max_delay=self.max_delay,
            max_total=self.max_waiting.total,
            max_per_submitter=self.max_waiting.per_submitter,
            max_body=self.max_body,
            output_limit=self.output,
            artifact_limit=self.artifacts,
            stages=self.stages,
            space=self.space or 0,
            profiles=self.profiles or (),
            backoff=self.backoff.first,
            most_backoff=self.backoff.most,
            ledger=self.ledger or "",
            layout=self.layout,
            classes=classes,
            elastic=self.elastic,
            interactive_idle=self.interactive.idle,
            interactive_cap=self.interactive.cap,
            interactive_per_submitter=self.interactive.per_submitter,
            sandbox_memory=self.sandbox.memory,
            sandbox_processes=self.sandbox.processes,
            sandbox_file_size=self.sandbox.file_size,
            sandbox_open_files=self.sandbox.open_files,
            sandbox_disk=self.sandbox.disk,
            sandbox_cpu=self.sandbox.cpu or _default.sandbox_cpu,
            sandbox_network=self.sandbox.network,
            private_addresses=private if self.private_addresses is None else self.private_addresses,
        )


def _levels(classes: dict[str, ClassConfig]) -> Iterator[DurationClass]:
    """Give the classes as the rules have them. One without a limit has the percentage of the one before."""
    before: Limit | None = None
    for name, each in classes.items():
        before = each.limit or (before if before and before.percent else None)
        yield DurationClass(name, each.cap, before)


def _misplaced(classes: dict[str, ClassConfig]) -> Iterator[Mistake]:
    """Find what is wrong with classes beside each other, each mistake with the path to it."""
    if not 1 <= len(classes) <= MOST_CLASSES:
        yield (), f"there are {len(classes)} classes; allowed are 1 to {MOST_CLASSES}, shortest first"
    longest, part, most = 0, WHOLE, MOST_RUNNING
    for index, (name, each) in enumerate(classes.items()):
        if each.cap <= longest:
            says = f"{duration.show(each.cap)} is not allowed; allowed is more than {duration.show(longest)}"
            yield (name, "cap"), f"{says}, since classes stand shortest first"
        longest = max(longest, each.cap)
        if each.limit is None:
            continue
        if index == 0:
            yield (name, "limit"), "the first class has none: its limit is the number of live slots"
        elif each.limit.amount > (part if each.limit.percent else most):
            before = Limit(part, percent=True) if each.limit.percent else Limit(most)
            says = f"{show_limit(each.limit)} is not allowed; allowed is at most {show_limit(before)}"
            yield (name, "limit"), f"{says}, the limit of a class before it"
        elif each.limit.percent:
            part = each.limit.amount
        else:
            # A percentage after a count is a part of that count.
            part, most = WHOLE, each.limit.amount


def _refuse(mistakes: Iterable[Mistake]) -> None:
    """Raise all mistakes at once, each at its own key."""
    lines = [
        InitErrorDetails(type=PydanticCustomError("refused", "{says}", {"says": says}), loc=path, input=None)
        for path, says in mistakes
    ]
    if lines:
        raise ValidationError.from_exception_data("settings", lines)


class Config(_Table):
    """All settings of one installation. There is always at least one queue."""

    store: StoreConfig = StoreConfig()
    server: ServerConfig = ServerConfig()
    worker: WorkerConfig = WorkerConfig()
    log: LogConfig = LogConfig()
    queues: dict[Annotated[str, AfterValidator(queue_name)], QueueConfig] = Field(
        default_factory=dict, validate_default=True
    )

    @field_validator("queues", mode="after")
    @classmethod
    def _at_least_one(cls, queues: dict[str, QueueConfig]) -> dict[str, QueueConfig]:
        return queues or {"default": QueueConfig()}
