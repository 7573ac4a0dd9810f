"""The calls as the server describes them in `/openapi.json`: parameters, bodies, answers and their fields."""

import json
import re
from collections.abc import Iterator
from typing import Any

from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores

Schema = dict[str, Any]
_NAMED = "#/components/schemas/"
_INTRODUCTION = """\
# HTTP API

Every call, written from the server's own description when this site is built. A server has it as `/docs` for
people and `/openapi.json` for programs. [The HTTP API by example](../http.md) shows what each answers.
"""


def document() -> Schema:
    """Give what a server answers at `/openapi.json`."""
    return create_app(Desk(MemoryStores()), hosts=["maitred"]).openapi()


def page() -> str:
    """Write the page."""
    described = document()
    calls: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, call in methods.items():
            calls.setdefault(call["tags"][0], []).extend(_call(method.upper(), path, call))
    lines = [_INTRODUCTION, described["info"]["description"]]
    for tag, told in calls.items():
        lines += [f"\n## {tag.capitalize()}\n", *told]
    lines += [*_refusals(described), "\n## Shapes\n"]
    for name, schema in described["components"]["schemas"].items():
        lines += _shape(name, schema)
    return "\n".join(lines)


def _call(method: str, path: str, call: Schema) -> Iterator[str]:
    yield f"\n### {call['summary']}\n"
    yield f"`{method} {path}`\n\n{call.get('description', '')}\n"
    if parameters := call.get("parameters"):
        yield "\n| parameter | in | |\n|---|---|---|"
        for each in parameters:
            must = "required" if each.get("required") else ""
            says = ", ".join(part for part in (_kind(each["schema"]), must) if part)
            yield f"| `{each['name']}` | {each['in']} | {says}. {_cell(each.get('description', ''))} |"
        yield ""
    for kind, body in call.get("requestBody", {}).get("content", {}).items():
        yield f"\nBody: {_kind(body['schema'])} as `{kind}`.\n"
        if "example" in body:
            yield f"\n```json\n{json.dumps(body['example'], indent=2, ensure_ascii=False)}\n```\n"
    for status, answer in call["responses"].items():
        if status < "400":
            shapes = ", ".join(sorted({_kind(each["schema"]) for each in answer.get("content", {}).values()}))
            yield f"Answers {status}{': ' + shapes if shapes else ''}.\n"
    refusals = [status for status in call["responses"] if status >= "400"]
    yield f"[Refuses](#refusals) with {', '.join(refusals)}.\n"


def _refusals(described: Schema) -> Iterator[str]:
    """Tell once what each status of a problem stands for; a call may have words of its own for it."""
    told: dict[str, set[str]] = {}
    for methods in described["paths"].values():
        for call in methods.values():
            for status, answer in call["responses"].items():
                if status >= "400":
                    told.setdefault(status, set()).add(_cell(answer["description"]))
    problem = _kind({"$ref": f"{_NAMED}Problem"})
    yield f"\n## Refusals\n\nA refusal is a {problem}.\n\n| status | when |\n|---|---|"
    for status in sorted(told):
        yield f"| {status} | {' '.join(sorted(told[status]))} |"
    yield ""


def _shape(name: str, schema: Schema) -> Iterator[str]:
    yield f'\n### {_title(name)} {{ id="{_anchor(name)}" }}\n'
    yield f"{schema.get('description', '')}\n"
    needed = schema.get("required", [])
    if properties := schema.get("properties"):
        yield "\n| field | | |\n|---|---|---|"
        for field, about in properties.items():
            must = ", required" if field in needed else ""
            yield f"| `{field}` | {_kind(about)}{must} | {_cell(about.get('description', ''))} |"
        yield ""


def _kind(schema: Schema) -> str:
    """Say what a value is, with links to the shapes that it is made of."""
    if ref := schema.get("$ref"):
        name = ref.removeprefix(_NAMED)
        return f"[{_title(name)}](#{_anchor(name)})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_kind(each) for each in schema[several]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    words = {"integer": "whole number", "string": "text", "null": "null", "boolean": "true or false"}
    return f"{words.get(kind, kind)}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return f" from {low:g} on" if low is not None else f" up to {high:g}" if high is not None else ""


def _title(name: str) -> str:
    """Write a list's shape as people say it: `Page_JobDocument_` is a list of jobs."""
    inner = re.fullmatch(r"Page_(?:Union_)?(.*?)_*", name)
    return f"Page of {inner[1].replace('__', ' or ')}" if inner else name


def _anchor(name: str) -> str:
    return f"shape-{name.strip('_').lower()}"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()
