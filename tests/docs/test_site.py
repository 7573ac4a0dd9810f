"""The site is built from the pages and the code without a warning or a broken link, and needs no network."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT
from tools.pages import bounds, commands, http_api, moves, settings

_LOADED = re.compile(r"""<(?:script|img|iframe)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)\"""")


def test_the_site_is_built_without_a_warning_and_is_whole(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stdout) == (0, ""), built.stdout + built.stderr
    nothing_is_loaded_from_another_host(tmp_path)
    every_part_of_the_reference_is_written_from_the_code(tmp_path)


def nothing_is_loaded_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    loaded = {one or other for page in pages for one, other in _LOADED.findall(page.read_text("utf-8"))}
    assert [address for address in loaded if re.match(r"\w+:|//", address)] == []
    styles = [style.read_text("utf-8") for style in site.rglob("*.css")]
    assert not any(re.search(r"url\(['\"]?(https?:)?//", style) for style in styles)
    assert not any('class="mermaid"' in page.read_text("utf-8") for page in pages), "a script draws these"


def every_part_of_the_reference_is_written_from_the_code(site: Path) -> None:
    calls = (site / "reference" / "http.html").read_text("utf-8")
    for path, methods in http_api.document()["paths"].items():
        assert all(f"<code>{method.upper()} {path}</code>" in calls for method in methods), path
    shown = (site / "reference" / "settings.html").read_text("utf-8")
    assert all(f".{name.removeprefix('classes.NAME.')}</code>" in shown for name in _names()), shown
    python = (site / "reference" / "python.html").read_text("utf-8")
    assert "run_until_idle" in python
    assert "UnverifiedWebhook" in python


def _names() -> list[str]:
    return [name for name in settings.defaults() if not name.startswith(settings.OF_THE_HOST)]


def test_the_bounds_of_the_benchmarks_are_on_the_page_of_capacity() -> None:
    page = bounds.with_bounds((ROOT / "docs" / "capacity.md").read_text("utf-8"))
    assert bounds.MARK not in page
    assert "| memory per waiting job, 1 kB configuration | at most 2.5 kB |" in page.splitlines()
    assert "| drain ÷ bullmq | at least 2× |" in page.splitlines()


def test_the_page_of_commands_has_each_of_them_with_its_options() -> None:
    page = commands.page()
    assert "\n### `maitred keys create`\n" in page
    assert "| `--expires <str>` | How long it is good, such as 90d. |" in page


def test_the_page_of_settings_says_what_the_code_allows() -> None:
    rows = settings.page().splitlines()
    assert "| `queues.NAME.lease` | `15s` | 1s to 1h |" in rows
    assert "| `queues.NAME.order` | `newest-first` | `newest-first` or `oldest-first` |" in rows
    assert "| `queues.NAME.sandbox.network` | `false` | `true` or `false` |" in rows
    assert "| `queues.NAME.artifacts` | `4MiB` | 0B to 256MiB |" in rows
    assert any(
        row.startswith("| `queues.NAME.classes.CLASS.cap` | `required` | 100ms to 30d") for row in rows
    )


def test_a_diagram_is_a_table_of_moves_where_no_script_may_draw_it() -> None:
    drawn = moves.without_scripts(
        '```mermaid\nstateDiagram-v2\n    state "to-do" as to_do\n    [*] --> to_do\n    to_do --> done\n'
        "    done --> [*]\n```\n"
    )
    assert drawn.count("<tr>") == 2
    assert '<span class="state to-do">to-do</span></td><td>→</td><td><span class="state done">' in drawn
    assert "the end" in drawn
