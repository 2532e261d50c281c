"""The HTML report: contents, self-containment, layout in a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from certikmeans.presolve.infeasibility_search import MustLinkPath
from certikmeans.problem import Problem
from certikmeans.report.html import report_html
from certikmeans.status import Status, StopReason
from tests.report.examples import make_result, make_trace

BROWSER = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
VOID = {"meta", "link", "br", "path", "use"}


class Structure(HTMLParser):
    """Whether every element is closed, and the text of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        if tag not in VOID or tag == "use":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f" {data}"


def text_of(page: str) -> str:
    structure = Structure()
    structure.feed(page)
    assert structure.open == []
    return " ".join(structure.text.split())


def example(n_points=60, n_features=3, n_clusters=4, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_points) % n_clusters
    points = scale * (rng.normal(size=(n_points, n_features)) + 5.0 * labels[:, None])
    pairs = (
        {"must_link": [(0, n_clusters)], "cannot_link": [(0, 1)]} if n_points > n_clusters else {}
    )
    problem = Problem.from_data(points, n_clusters, **pairs)
    return problem, make_result(problem, labels)


def page_of(problem, result, **options) -> str:
    return report_html(problem, result, make_trace(result), **options)


def test_page_contents():
    problem, result = example()
    page = page_of(
        problem,
        result,
        title="flowers & <bees>",
        feature_names=("a<b", "c", "d"),
        settings={"gap": 0.001, "time_limit_seconds": None, "bound": "auto"},
        agreement=0.5,
        command="certikmeans solve 'x y.csv'",
        check="certikmeans check c --data 'x y.csv'",
        certified=True,
    )
    text = text_of(page)
    for words in (
        "flowers & <bees>",
        "What is proven",
        "no labelling that respects the constraints costs less than the lower bound",
        "A certificate was written",
        "certikmeans check c --data 'x y.csv'",
        "gap in %",
        "requested: 0.1 %",
        "Table of clusters",
        "centre: a<b",
        "1 must-link, all respected.",
        "1 cannot-link, all respected.",
        "certikmeans solve 'x y.csv'",
        "time_limit_seconds none",
        "certikmeans " + result.version,
        "numpy " + np.__version__,
    ):
        assert words in text, words
    assert "<bees>" not in page


def test_page_without_check_command():
    problem, result = example()
    text = text_of(page_of(problem, result))
    assert "model.write_certificate(path)" in text
    assert "certikmeans check" in text


def test_legend_of_clusters():
    problem, result = example(n_points=60, n_clusters=4)
    assert "cluster 3 (15)" in text_of(page_of(problem, result))
    problem, result = example(n_points=60, n_clusters=30)
    text = text_of(page_of(problem, result))
    assert "cluster 11 (2)" in text
    assert "cluster 12 (" not in text
    assert "and 18 more clusters" in text


def test_no_figures_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    problem, result = example()
    page = page_of(problem, result)
    assert "<svg" not in page
    text = text_of(page)
    assert "no figures: figures need matplotlib" in text
    assert "pip install 'certikmeans[plot]'" in text
    assert "Table of clusters" in text


def test_equal_runs_give_equal_pages():
    problem, result = example()
    assert page_of(problem, result) == page_of(problem, result)


def test_page_is_self_contained():
    problem, result = example()
    page = page_of(problem, result)
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "<script" not in page
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)", page))


def test_table_of_clusters():
    problem, result = example(n_points=50, n_clusters=7)
    rows = re.findall(r"<tr>(.*?)</tr>", page_of(problem, result).split("Table of clusters")[1])
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in rows[1:8]]
    assert [int(row[1]) for row in cells] == list(range(7))
    assert sum(int(row[2]) for row in cells) == 50
    assert sum(float(row[4]) for row in cells) == pytest.approx(result.cost, rel=1e-5)
    inside = result.labels == 3
    away = np.linalg.norm(problem.points[inside] - result.centers[3], axis=1)
    assert float(cells[3][5]) == pytest.approx(away.max(), rel=1e-4)


@pytest.mark.parametrize(
    ("shape", "scale"),
    [
        *((shape, 1.0) for shape in [(1, 1, 1), (2, 2, 2), (300, 40, 30), (9000, 2, 3)]),
        *(((30, 1, 3), scale) for scale in [0.0, 1e-60, 1.0, 1e55]),
    ],
)
def test_page_of_any_shape_and_scale(shape, scale):
    problem, result = example(*shape, scale=scale)
    page = page_of(problem, result)
    assert "nan" not in re.sub(r"<title>.*?</title>", "", page)
    assert len(page) < 1_500_000
    assert "What is proven" in text_of(page)


def test_page_without_trace_or_labels():
    problem, result = example()
    assert "Progress" not in text_of(report_html(problem, result))
    unknown = make_result(problem, None)
    assert "nothing: neither a labelling nor a proof" in text_of(page_of(problem, unknown))
    infeasible = make_result(
        problem,
        None,
        status=Status.INFEASIBLE,
        stop_reason=StopReason.PROVEN_INFEASIBLE,
        lower_bound=np.inf,
        infeasibility=MustLinkPath((0, 4, 1)),
    )
    assert "must-links join them: 0 - 4 - 1" in text_of(page_of(problem, infeasible))
    empty = make_result(problem, np.zeros(60, dtype=int))
    assert "Table of clusters" in text_of(page_of(problem, empty))


MEASURE = """<script>
const wide = [...document.querySelectorAll("section, .card, svg, p, pre")]
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5);
const boxes = [...document.querySelectorAll("svg")].map(e => e.getBoundingClientRect());
const outside = [...document.querySelectorAll("section svg")].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text, use")].map(e => e.getBoundingClientRect())
    .filter(b => b.left < box.left - 1 || b.right > box.right + 1 ||
                 b.top < box.top - 1 || b.bottom > box.bottom + 1);
});
document.body.innerHTML = "<pre id=answer>" + JSON.stringify({
  scroll: document.documentElement.scrollWidth, client: document.documentElement.clientWidth,
  wide: wide.map(e => e.tagName + "." + e.className), outside: outside.length,
  pictures: boxes.filter(b => b.width > 200 && b.height > 100).length,
  ink: getComputedStyle(document.body).color}) + "</pre>";
</script>"""


def in_browser(tmp_path, page: str, width: int) -> tuple[dict, str]:
    path = tmp_path / f"page{width}.html"
    path.write_text(page.replace("</body>", MEASURE + "</body>"))
    done = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"),
            *(f"--window-size={width},900", "--dump-dom", path.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert answer, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(html.unescape(answer[1])), done.stderr


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1200, 520])
def test_page_in_browser(tmp_path, width):
    problem, result = example(n_points=200, n_features=12, n_clusters=10)
    page = page_of(
        problem,
        result,
        title="a_long_name_without_spaces_" * 8,
        feature_names=tuple(f"a rather long name of feature number {j}" for j in range(12)),
        settings={"gap": 0.001, "bound": "auto"},
        command="certikmeans solve " + "long_file_name_" * 20,
        check="certikmeans check F --data x.csv",
    )
    seen, log = in_browser(tmp_path, page, width)
    assert seen["scroll"] <= seen["client"]
    assert seen["wide"] == []
    assert seen["outside"] == 0
    assert seen["pictures"] == 3
    assert seen["ink"] == "rgb(29, 37, 48)"  # the style sheet was understood
    assert "CONSOLE" not in log
