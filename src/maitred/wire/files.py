"""The files of a command or script: what is laid out beside it, and what is kept of what it made."""

import binascii
import re
from base64 import b64decode
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from maitred.wire.checks import HttpUrl, RelativePath, encodable, said

MOST_FILES = 1_000
MOST_ARTIFACTS = 100
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_URL: TypeAdapter[str] = TypeAdapter(HttpUrl)


def _file(content: object) -> dict[str, str]:
    match content:
        case {"text": str(text), **more} if not more:
            return {"text": encodable(text)}
        case {"base64": str(text), **more} if not more:
            try:
                b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                raise said("has base64 that cannot be decoded") from None
            return {"base64": text}
        case {"url": str(url), "sha256": str(digest), **more} if not more:
            return {"url": _address(url), "sha256": _digest(digest)}
        case {"url": _}:
            raise said('must have "url" and "sha256", both text, and nothing else')
        case _:
            raise said('must be {"text": …}, {"base64": …} or {"url": …, "sha256": …}')


def _address(url: str) -> str:
    try:
        return _URL.validate_python(url)
    except ValidationError:
        raise said("has a url that is not an http or https address of at most 2048 characters") from None


def _digest(text: str) -> str:
    if not _SHA256.fullmatch(text):
        raise said("has a sha256 that is not 64 hexadecimal digits")
    return text.lower()


def _apart(files: dict[str, Any]) -> dict[str, Any]:
    """Refuse a file where another one needs a directory: they cannot both be there."""
    for name in files:
        above = name
        while "/" in above:
            above = above.rpartition("/")[0]
            if above in files:
                raise said(f"has {above!r} as a file, and {name!r} in a directory of that name")
    return files


def _schema(*names: str) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    return {
        "type": "object",
        "properties": properties,
        "required": list(names),
        "additionalProperties": False,
    }


Files = Annotated[
    dict[
        RelativePath,
        Annotated[
            Any,
            AfterValidator(_file),
            WithJsonSchema({"oneOf": [_schema("text"), _schema("base64"), _schema("url", "sha256")]}),
        ],
    ],
    Field(max_length=MOST_FILES),
    AfterValidator(_apart),
]
Artifacts = Annotated[list[RelativePath], Field(max_length=MOST_ARTIFACTS)]
