"""What the server answers of API keys, and of what was done with them."""

from typing import Literal

from pydantic import Field

from maitred.wire.answer import Answer, Time


class SecretDocument(Answer):
    """A secret that callbacks are signed with, and until when; null is for ever."""

    secret: str
    until: Time | None = None


class KeyDocument(Answer):
    """An API key, without the key itself, which is not kept. No queues or submitters: it is good for all."""

    id: str
    name: str
    role: Literal["viewer", "submitter", "operator", "admin"]
    queues: list[str]
    submitters: list[str]
    created_at: Time
    expires_at: Time | None = None
    revoked: bool = False
    secrets: list[SecretDocument] = Field(description="What its callbacks are signed with, the newest first.")
    key: str | None = Field(None, description="The key itself; only in the answer to the call that made it.")


class AuditEntry(Answer):
    """One change: who made it, by which call, to what, from where, and what became of it."""

    id: str
    at: Time
    by: str = Field(description="The id of the key; `local` is whoever called while there were no keys.")
    name: str = Field(description="The name of the key then.")
    address: str = Field(description="Where the call came from.")
    action: str = Field(description="The method and the route.")
    queue: str | None = None
    subject: str | None = Field(None, description="The job, batch, submitter, profile or key.")
    status: int = Field(description="The status of the answer; 101 is a session that was opened.")
