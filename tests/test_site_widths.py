"""Pages of the built site fit a laptop (1366 px) and a phone (390 px), measured in Chromium.

Needs `make docs` and Chromium; `make check` builds the site first.
"""

from __future__ import annotations

import functools
import html
import json
import re
import shutil
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SITE = Path(__file__).parents[1] / "build" / "site"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
PAGES = [
    "index.html", "install.html", "tutorial.html", "upgrade.html", "guides/pairs.html",
    "guides/command-line.html",
    "concepts/cluster-bound.html", "concepts/sdp-bound.html", "gallery/index.html",
    "benchmarks/paper.html", "benchmarks/highdim.html", "benchmarks/many.html",
    "benchmarks/defaults.html",
]  # fmt: skip
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=30000", "--dump-dom",
]  # fmt: skip

# Loads every page in a frame of the given width and measures what is too wide.
SCRIPT = """<html><body><script>
const pages = PAGES, width = WIDTH, found = {};
async function measure(page) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "800px"; frame.style.border = "0";
  frame.src = "/" + page;
  document.body.appendChild(frame);
  await new Promise(done => { frame.onload = done; });
  await new Promise(done => setTimeout(done, 300));
  const inner = frame.contentDocument;
  const wide = [...inner.querySelectorAll(".md-typeset__scrollwrap")]
    .filter(one => one.scrollWidth > one.clientWidth + 1).length;
  found[page] = { page: inner.documentElement.scrollWidth, tables: wide,
                  formulas: inner.querySelectorAll(".arithmatex:not(:has(.katex))").length };
  frame.remove();
}
(async () => {
  for (const page of pages) await measure(page);
  document.body.innerHTML = "<pre>" + JSON.stringify(found) + "</pre>";
})();
</script></body></html>"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves the site without writing to the terminal."""

    def log_message(self, *_):
        pass


@functools.cache
def measured(width):
    """Width of every page, and its tables and formulas that do not fit or are not rendered."""
    wrapper = SITE / f"measure-{width}.html"
    text = SCRIPT.replace("PAGES", json.dumps(PAGES)).replace("WIDTH", str(width))
    wrapper.write_text(text, encoding="utf-8")
    handler = functools.partial(QuietHandler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/{wrapper.name}"
        run = subprocess.run(
            [str(BROWSER), *FLAGS, address], capture_output=True, text=True, timeout=300, check=True
        )
        server.shutdown()
    wrapper.unlink()
    return json.loads(html.unescape(re.search(r"<pre>(.*)</pre>", run.stdout)[1]))


needs_browser = pytest.mark.skipif(
    BROWSER is None or not (SITE / "index.html").exists(), reason="needs Chromium and `make docs`"
)


@needs_browser
@pytest.mark.parametrize("width", [1366, 390])
def test_pages_are_not_wider_than_the_screen(width):
    too_wide = {page: one["page"] for page, one in measured(width).items() if one["page"] > width}
    assert too_wide == {}


@needs_browser
def test_tables_fit_a_laptop():
    assert {page: one["tables"] for page, one in measured(1366).items() if one["tables"]} == {}


@needs_browser
def test_formulas_are_rendered():
    assert {page for page, one in measured(1366).items() if one["formulas"]} == set()


def test_measured_pages_are_found():
    root = SITE.parents[1]
    for page in PAGES:
        stem = page.removesuffix(".html")
        generated = stem in ("index", "guides/index")
        assert generated or (root / "docs" / f"{stem}.md").exists(), page
