"""The page of calls at `/docs`: what `/openapi.json` says, for people.

It is one page without scripts that loads nothing from anywhere, so it works without a network and under the
strictest policy. Each call has an example that can be pasted into a terminal.
"""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

Schema = dict[str, Any]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; text-transform: capitalize; }
details { border: 1px solid #8886; border-radius: .4rem; margin: .4rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
summary span { opacity: .75; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; background: #8882; border-radius: .3rem; padding: .6rem; }
table { border-collapse: collapse; }
td { padding: .15rem .8rem .15rem 0; vertical-align: top; }
"""
_DIGEST = b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)


async def page(request: Request) -> Response:
    """Answer with the page; it is written when somebody asks for the first time."""
    state = request.app.state
    if not hasattr(state, "page"):
        state.page = write_page(request.app.openapi())
    return HTMLResponse(state.page, headers={"Content-Security-Policy": _POLICY})


def write_page(described: Schema) -> str:
    """Write what a description says as HTML."""
    calls: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, call in methods.items():
            calls.setdefault(call.get("tags", ["other"])[0], []).append(_call(method.upper(), path, call))
    sections = "".join(f"<h2>{escape(tag)}</h2>{''.join(found)}" for tag, found in calls.items())
    schemas = described["components"]["schemas"]
    shapes = "".join(_shape(name, schemas[name]) for name in sorted(schemas))
    title = escape(described["info"]["title"])
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}: the API</title>"
        "<meta name=viewport content='width=device-width'>"
        f"<style>{_STYLE}</style><h1>{title}</h1>{_text(described['info']['description'])}"
        "<p><a href=/openapi.json>/openapi.json</a> says the same to programs.</p>"
        f"{sections}<h2>Shapes</h2>{shapes}</html>"
    )


def _call(method: str, path: str, call: Schema) -> str:
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {})
    parts = [
        _text(call.get("description", "")),
        _rows("Parameters", [_parameter(each) for each in call.get("parameters", [])]),
        _body(body) if body else "",
        _rows("Answers", [_answer(status, each) for status, each in call["responses"].items()]),
        f"<pre>{escape(_example(method, _named(path, call), body.get('example')))}</pre>",
    ]
    return (
        f"<details id='{escape(call['operationId'])}'><summary><b>{method}</b> <code>{escape(path)}</code> "
        f"<span>{escape(call['summary'])}</span></summary>{''.join(parts)}</details>"
    )


def _parameter(each: Schema) -> tuple[str, str]:
    where = each["in"] + (", required" if each.get("required") else "")
    return f"<code>{escape(each['name'])}</code>", f"{where}. {escape(each.get('description', ''))}"


def _answer(status: str, each: Schema) -> tuple[str, str]:
    shapes = {_link(content["schema"]) for content in each.get("content", {}).values()}
    return status, " ".join([escape(each["description"]), *sorted(shapes)])


def _body(body: Schema) -> str:
    return f"<p>Body: {_link(body['schema']) or 'JSON'}</p>"


def _link(schema: Schema) -> str:
    """Name the shapes that a schema is made of."""
    found = [each.split('"')[0] for each in json.dumps(schema).split('"#/components/schemas/')[1:]]
    return ", ".join(f"<a href='#{escape(name)}'>{escape(name)}</a>" for name in dict.fromkeys(found))


def _shape(name: str, schema: Schema) -> str:
    written = escape(json.dumps(schema, indent=2, ensure_ascii=False))
    summary = f"<summary><code>{escape(name)}</code></summary>"
    return f"<details id='{escape(name)}'>{summary}<pre>{written}</pre></details>"


def _rows(title: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    return f"<p>{title}</p><table>{''.join(f'<tr><td>{a}<td>{b}' for a, b in rows)}</table>"


def _text(text: str) -> str:
    """Write paragraphs; what stands between backticks is code."""
    written = "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n") if part)
    pieces = written.replace("**", "").split("`")
    return "".join(f"<code>{piece}</code>" if odd % 2 else piece for odd, piece in enumerate(pieces))


def _named(path: str, call: Schema) -> str:
    """Put the examples of its names into a path, so that it can be asked for as it stands."""
    for each in call.get("parameters", []):
        path = path.replace(f"{{{each['name']}}}", str(each.get("example")))
    return path


def _example(method: str, path: str, body: object) -> str:
    address = f"http://127.0.0.1:7500{path}"
    lines = [f"curl -X {method} '{address}'", '-H "Authorization: Bearer $MAITRED_KEY"']
    if body is not None:
        text = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
        lines.append(f"-d '{text}'")
    return " \\\n  ".join(lines)
