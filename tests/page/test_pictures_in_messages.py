"""Messages with parts: pictures are shown, and nothing is fetched for them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from evalsuite.content import file, image
from evalsuite.core.types import Message, Transcript

PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def test_a_picture_is_shown_and_an_address_is_not_fetched(make_run: Any, make_record: Any, open_page: Any) -> None:
    vector = {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zy8+"}}
    far = image("https://192.0.2.1/leak.png")
    parts: list[Any] = ["What is this?", image(PIXEL), far, vector, file(b"%PDF", name="a.pdf")]
    seen = make_record("cat", transcript=Transcript("a dot", (Message("user", parts=parts),)))
    page = open_page(make_run("pictures", [seen]), "#cases")
    page.locator(".line.row").click()
    page.wait_for_selector(".case-body")
    for details in page.locator("details").all():
        details.evaluate("one => { one.open = true }")
    pictures = page.locator(".message.user img")
    assert pictures.count() == 1
    assert pictures.first.evaluate("one => one.decode().then(() => one.naturalWidth)") == 1
    words = page.locator(".message.user").inner_text()
    for shown in ("What is this?", "(image_url: https://192.0.2.1/leak.png)", "(image_url)", "(file: a.pdf)"):
        assert shown in words


def test_files_of_programs_are_shown_and_nothing_in_them_is_active(
    make_run: Any, make_record: Any, open_page: Any
) -> None:
    event = {
        "kind": "program",
        "code": "plt.savefig('dot.png')",
        "stdout": "",
        "error": None,
        "timed_out": False,
        "seconds": 0.1,
        "figures": [{"name": "dot.png", "png": b64encode(PIXEL).decode()}, {"name": "x.svg", "png": "PHN2Zy8+"}],
        "files": [{"name": "out.csv", "text": "<img src=x onerror='parent.owned=1'>"}],
    }
    seen = make_record("dot", transcript=Transcript("done", events=(event,)))
    page = open_page(make_run("files", [seen]), "#cases")
    page.locator(".line.row").click()
    page.wait_for_selector(".case-body")
    for details in page.locator("details").all():
        details.evaluate("one => { one.open = true }")
    pictures = page.locator(".message.program img")
    assert pictures.count() == 1
    assert pictures.first.evaluate("one => one.decode().then(() => one.naturalWidth)") == 1
    words = page.locator(".message.program").inner_text()
    assert "file out.csv" in words
    assert "<img src=x onerror=" in words
    assert page.evaluate("window.owned === undefined")
