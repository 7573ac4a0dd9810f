"""Bytes: JSON as it comes from callers, and a job's configuration as the store keeps it.

The store never looks into a configuration. It holds what no verb needs and no PUT changes in part: the key,
the response address, what to run, the metadata, and the flags that were sent.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from maitred.wire.body import JobBody

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def decode_json(text: bytes) -> Any:
    """Read JSON as the standard has it, without NaN and Infinity; ValueError if it is not that."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def encode_json(value: object) -> bytes:
    """Write JSON."""
    return _encoder.encode(value)


def encode_body(body: JobBody, by: str, trace: Mapping[str, str] | None = None) -> bytes:
    """Write the configuration of a job that was checked; what it is told about is signed for the key `by`.

    `trace` is that of whoever submits it, where somebody traces.
    """
    kept: dict[str, object] = {"key": body.key, "run": vars(body.run)}
    if body.response_url is not None:
        kept |= {"response_url": body.response_url, "submitted_by": by}
    if body.metadata:
        kept["metadata"] = body.metadata
    if body.immediate:
        kept["immediate"] = True
    if body.bulk:
        kept["bulk"] = True
    if trace:
        kept["trace"] = trace
    return _encoder.encode(kept)


def decode_body(text: bytes) -> dict[str, Any]:
    """Read what `encode_body` wrote; what was not sent is not there."""
    kept: dict[str, Any] = _decoder.decode(text)
    return kept
