"""Checks that bodies share: text that can be sent, addresses, paths, and values that JSON can say."""

import math
import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

DEEPEST = 64
_URL = re.compile(r"https?://[^\s\x00-\x20\x7f]+", re.IGNORECASE)
_PLAIN = frozenset({str, int, bool, type(None)})


class Strict(BaseModel):
    """What a caller sends: types are strict, and a field that nobody knows is a fault."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, regex_engine="rust-regex")


def said(message: str) -> PydanticCustomError:
    """Make a fault with words of its own, where the field's rule would not say enough."""
    return PydanticCustomError("said", "{words}", {"words": message})


def text_of(limit: int) -> AfterValidator:
    """Let text have from 1 to so many bytes."""

    def check(text: str) -> str:
        # UnicodeEncodeError is a ValueError: text that cannot be sent is a fault like any other.
        if not 1 <= len(text.encode()) <= limit:
            raise ValueError
        return text

    return AfterValidator(check)


def _http_url(url: str) -> str:
    url.encode()
    if not _URL.fullmatch(url):
        raise ValueError
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError
    return url


def _json_object(value: dict[str, Any]) -> dict[str, Any]:
    _only_json(value, 0)
    return value


def _only_json(value: object, depth: int) -> None:
    """Refuse what JSON cannot say, or would say as something else: the worker must get what was sent."""
    kind = type(value)
    if kind is str:
        encodable(str(value))
    elif kind in _PLAIN:
        return
    elif depth > DEEPEST:
        raise said(f"is nested deeper than {DEEPEST} levels")
    elif kind is dict:
        for name, part in value.items():  # type: ignore[attr-defined]
            if type(name) is not str:
                raise said("has a name that is not text")
            encodable(name)
            _only_json(part, depth + 1)
    elif kind is list:
        for part in value:  # type: ignore[attr-defined]
            _only_json(part, depth + 1)
    elif not (isinstance(value, float) and math.isfinite(value)):
        raise said(f"holds {kind.__name__} where only JSON's values are allowed")


def encodable(text: str) -> str:
    """Refuse text that cannot be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise said("holds text that is not Unicode") from None
    return text


def argument(text: str) -> str:
    """Refuse text that no program can be given."""
    if "\0" in text:
        raise said("cannot hold a zero character: it is an argument of a program")
    return encodable(text)


def _relative_path(name: str) -> str:
    parts = encodable(name).split("/")
    if "\0" in name or not {"", ".", ".."}.isdisjoint(parts):
        raise said("is not a relative path without empty parts, . and ..")
    if len(name.encode()) > 1024 or any(len(part.encode()) > 255 for part in parts):
        raise said("is a longer path than 1024 bytes, or has a longer name in it than 255")
    return name


Argument = Annotated[str, AfterValidator(argument)]
RelativePath = Annotated[str, AfterValidator(_relative_path)]
HttpUrl = Annotated[
    str,
    Field(max_length=2048, json_schema_extra={"format": "uri", "pattern": "^https?://"}),
    AfterValidator(_http_url),
]
JsonObject = Annotated[dict[str, Any], AfterValidator(_json_object)]
