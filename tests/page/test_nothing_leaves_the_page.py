"""Whatever a model wrote stays text: nothing of it runs, and nothing leaves the page."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.cli import main
from evalsuite.core.types import Message, ToolCall, Transcript
from evalsuite.output.page.view import list_runs, write_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

HOSTILE = (
    "<script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 1'>",
    "<img src='http://192.0.2.1/leak.png'><link rel=prefetch href='http://192.0.2.1/'>",
    "</script><script>window.owned = 1</script><!--SCRIPT-->",
    "<table><tr><td><img src='http://192.0.2.1/a.png' onerror='parent.owned=1'>cell</td></tr></table>",
    "<table><tr><td onmouseover='window.owned=1'><a href='javascript:window.owned=1'>cell</a></td></tr></table>",
    "<table><tr><td><meta http-equiv=refresh content='0;url=http://192.0.2.1/'>cell</td></tr></table>",
    "| a |\n|---|\n| <svg onload='window.owned=1'> |",
    "\\begin{tabular}{l}</td><script>window.owned=1</script>\\\\\\end{tabular}",
    "<style>body{background:url(http://192.0.2.1/)}</style>\u2028\u2029\x1b[31m",
    "keepChunk('index-0', '')//",
)


def hostile_case(make_record: Any, sample: str, words: str) -> Any:
    call = ToolCall("1", words, words)
    said = {"kind": "said", "role": "assistant", "content": words, "speaker": words, words: words}
    return make_record(
        sample,
        input=words,
        target=words,
        error=words,
        outcome="failed",
        scores={"exact_match": 0.0},
        tags={"region": words},
        notes={"exact_match": words},
        logs={"exact_match": [said]},
        transcript=Transcript(
            words,
            (Message("user", words), Message("assistant", words, (call,))),
            words,
            ({"kind": "program", "code": words, "stdout": words, "error": words, "seconds": 1.0},),
        ),
    )


def test_hostile_output_is_text_wherever_it_is_shown(make_run: Any, make_record: Any, open_page: Any) -> None:
    cases = {f"bad{number:02}": words for number, words in enumerate(HOSTILE)}
    records = [hostile_case(make_record, sample, words) for sample, words in cases.items()]
    page = open_page(make_run("bad", records, gate=["capitals.exact_match >= 0.5"]), "#cases?sort=case")
    for row, words in enumerate(cases.values()):
        page.locator(".line.row").nth(row).click()
        page.wait_for_selector(".case-body")
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true }")
        page.wait_for_timeout(100)
        assert page.evaluate("window.owned") is None, words
        shown = " ".join(page.locator(".case-body").inner_text().replace("\x1b", "").split())
        assert " ".join(words.replace("\x1b", "").split())[:12] in shown
        page.keyboard.press("Escape")
    for view in ("#report", "#overview"):
        page.evaluate("view => { location.hash = view }", view)
    assert page.evaluate("window.owned") is None


def test_a_rendered_table_can_neither_run_nor_load(make_run: Any, make_record: Any, open_page: Any) -> None:
    table = "<table><tr><th>name</th></tr><tr><td><b onclick=x>Ada</b><img src='http://192.0.2.1/'></td></tr></table>"
    page = open_page(make_run("table", [make_record("fr", answer=table)]), "#cases")
    page.locator(".line.row").click()
    frame = page.wait_for_selector("iframe.rendered")
    assert frame.get_attribute("sandbox") == ""
    inside = frame.content_frame()
    assert inside.locator("td").inner_html() == "Ada"
    assert inside.locator("table").evaluate("one => getComputedStyle(one).borderCollapse") == "collapse"


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_policy_stops_what_the_page_itself_does_not_do(
    make_run: Any, make_record: Any, browser: Any, listener: tuple[str, list[str]]
) -> None:
    url, asked = listener
    page: Page = browser.new_page()
    page.goto((make_run("any", [make_record("fr")]).path / "report.html").as_uri())
    page.evaluate(
        """async url => {
          const add = (tag, more) => document.body.append(Object.assign(document.createElement(tag), more));
          add("img", { src: url + "/image" });
          add("iframe", { src: url + "/frame" });
          add("link", { rel: "stylesheet", href: url + "/style" });
          add("video", { src: url + "/video" });
          const inline = document.createElement("div");
          document.body.append(inline);
          inline.innerHTML = "<button id='b' onclick='window.owned = 1'>x</button>";
          document.getElementById("b").click();
          await fetch(url + "/fetch").catch(() => null);
          await new Promise(done => setTimeout(done, 100));
        }""",
        url,
    )
    assert page.evaluate("window.owned") is None
    assert not asked
    page.close()


def test_hostile_words_are_text_in_a_comparison_and_in_the_index_of_runs(
    make_run: Any, make_record: Any, open_page: Any, compare: Any, tmp_path: Path
) -> None:
    words = "".join(HOSTILE)
    folders = []
    for name in ("one", "two"):
        hostile = make_record(
            "bad",
            input=words,
            answer=words + name,
            target=words,
            scores={"exact_match": float(name == "one"), "<img src=x onerror=window.owned=1>": 0.5},
            tags={"<b onclick=window.owned=1>": words},
        )
        folder = make_run(name, [hostile, make_record("good")])
        folder.write_info(folder.info() | {"model": words + name})
        folders.append(folder)
    page = open_page(compare(*folders), "#cases")
    page.locator(".line.row").first.click()
    page.wait_for_selector(".case-body")
    for view in ("#report", "#overview"):
        page.evaluate("view => { location.hash = view }", view)
        page.wait_for_timeout(50)
    assert page.evaluate("window.owned") is None
    index = open_page(write_index(list_runs(tmp_path), tmp_path))
    assert index.evaluate("window.owned") is None
    assert "<script>window.owned" in index.locator("body").inner_text()


def test_no_file_of_a_run_holds_markup_or_a_formula_of_a_models(
    make_run: Any, make_record: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "=HYPERLINK(1)<script>x</script></details>\n```\n| a | @team \x1b[2J"
    wrong = make_record(
        "bad", input=words, answer=words, target=words, outcome="failed", error=words, scores={"f1": 0.0}
    )
    folder = make_run("bad", [wrong, make_record("good", scores={"f1": 1.0})], gate=["capitals.f1 >= 0.9"])
    for name in ("report.md", "comment.md"):
        outside = re.sub(r"(?ms)^(`{3,})text$.*?^\1$", "", (folder.path / name).read_text("utf-8"))
        assert "<script" not in outside
        assert "@team" not in outside
        assert "\x1b" not in outside
    csv = tmp_path / "cases.csv"
    reports = f"--reports={tmp_path}"
    for command in (["export", "bad", "--to", "csv", "-o", str(csv)], ["show", "bad"], ["runs"]):
        assert main([*command, reports, *(["--run=bad"] if command[0] == "show" else [])]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert not re.search(r'(?m)(^|,)"?=HYPER', csv.read_text("utf-8"))
