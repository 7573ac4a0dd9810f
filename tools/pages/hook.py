"""What mkdocs calls while it builds the site: it adds what is written from the code or stands beside `docs/`.

A page may link to a file beside `docs/`, as it does in the source tree; the site has that page too, or a copy
of the file. Nothing on the site is loaded from another host.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.pages import bounds, commands, http_api, moves, settings

ROOT = Path(__file__).parents[2]
COMPARED = "Beside other queues"
GUIDE = "web.md"
# Where pages from outside of `docs/` stand on the site.
HOMES = {"README.md": "beside.md", "CHANGELOG.md": "changelog.md", "benchmarks/README.md": "benchmarks.md"}
_QUEUE = "/api/v1/queues/{queue}"
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
# A link to a program that stands alone is the program itself, where there is room for it.
_PROGRAM = re.compile(r"^\[`(\S+\.py)`\]\(\S+\)$", re.MULTILINE)


def _compared() -> str:
    """Give the part of the README that compares, as a page of its own."""
    part = re.search(rf"^#(# {COMPARED}\n.*?)^## ", _read("README.md"), re.MULTILINE | re.DOTALL)
    if not part:
        raise SystemExit(f"README.md has no part {COMPARED!r}")
    return part[1]


def _read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


GENERATED: dict[str, Callable[[], str]] = {
    "reference/http.md": http_api.page,
    "reference/commands.md": commands.page,
    "reference/settings.md": settings.page,
    HOMES["README.md"]: _compared,
    HOMES["CHANGELOG.md"]: lambda: _read("CHANGELOG.md"),
    HOMES["benchmarks/README.md"]: lambda: _read("benchmarks/README.md"),
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages that the site's settings do not name beside those of their folder, or else to the guides."""
    named = dict(_places(config.nav or []))
    for path in sorted(Path(config.docs_dir).rglob("*.md")):
        page = path.relative_to(config.docs_dir).as_posix()
        if page not in named:
            folder = posixpath.dirname(page)
            beside = (other for other in named if folder and posixpath.dirname(other) == folder)
            named[next(beside, GUIDE)].append(page)
    return config


def _places(pages: list[object]) -> Iterator[tuple[str, list[object]]]:
    """Give each page that a part of the navigation names, and the list that it stands in."""
    for each in pages:
        told = next(iter(each.values())) if isinstance(each, dict) else each
        if isinstance(told, list):
            yield from _places(told)
        elif isinstance(told, str):
            yield told, pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that nobody has to write, and the files that pages link to."""
    for name, write in GENERATED.items():
        files.append(File.generated(config, name, content=write()))
    for page in files.documentation_pages():
        for target in _LINK.findall(page.content_string):
            copy = _copied(_in_the_tree(page.src_uri, target))
            if copy and not files.get_file_from_path(copy):
                source = ROOT / copy.removeprefix("files/")
                files.append(File.generated(config, copy, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw diagrams without scripts, show programs that are linked to, lead links to what is on the site."""
    del config, files
    here = page.file.src_uri

    def led(found: re.Match[str]) -> str:
        path = _in_the_tree(here, found[1])
        target = path.removeprefix("docs/") if path.startswith("docs/") else HOMES.get(path) or _copied(path)
        return posixpath.relpath(target, posixpath.dirname(here) or ".") if target else found[1]

    return _LINK.sub(led, _PROGRAM.sub(_shown, bounds.with_bounds(moves.without_scripts(markdown))))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out of the table of contents what is the same for all calls."""
    del config, files
    entries = [*page.toc]
    for entry in entries:
        entries += entry.children
        entry.title = entry.title.replace(f"{_QUEUE}/", "…/")
    return html


def _in_the_tree(page: str, target: str) -> str:
    """Give where a page's link leads in the source tree, as a path from its root."""
    sources = {home: path for path, home in HOMES.items()}
    base = posixpath.dirname(sources.get(page, f"docs/{page}"))
    return posixpath.normpath(posixpath.join(base, target))


def _copied(path: str) -> str | None:
    """Give where the site has the copy of a file beside `docs/`; None if there is no such file to copy."""
    plain = not path.startswith(("docs/", "..")) and path not in HOMES and (ROOT / path).is_file()
    return f"files/{path}" if plain else None


def _shown(found: re.Match[str]) -> str:
    return f'```python title="{found[1]}"\n{_read(found[1])}```'
