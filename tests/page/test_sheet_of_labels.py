"""The page of `evalsuite judge sheet`, used by keyboard in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.commands.judge import read_label_sheet
from evalsuite.output.page.document import build_sheet_page

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
YES_NO = [("y", "yes", "yes"), ("n", "no", "no")]


def item(case: str, **fields: Any) -> dict[str, Any]:
    shown = {"question": "Is it right?", "sections": [("answer", HOSTILE)], "choices": YES_NO, "pictures": []}
    return {"case": case, "content": f"h {case}", "range": None, **shown, **fields}


def open_sheet(tab: Page, folder: Path, *cases: dict[str, Any]) -> None:
    page = folder / "labels.html"
    page.write_text(build_sheet_page("Cases to label", {"key": "k", "file": "labels.csv", "cases": cases}), "utf-8")
    tab.goto(page.as_uri())


def save(tab: Page, folder: Path) -> dict[str, float]:
    with tab.expect_download() as download:
        tab.keyboard.press("s")
    download.value.save_as(folder / "saved.csv")
    return dict(read_label_sheet(folder / "saved.csv").labels)


def test_labels_are_given_and_saved_by_keyboard_alone(tab: Page, tmp_path: Path) -> None:
    typed = item('b,"2"', choices=[], range=[0, 1])
    open_sheet(tab, tmp_path, item("a"), typed, item("c"), item("d"))
    tab.keyboard.press("y")
    assert "Case 2 of 4" in tab.inner_text("#masthead")
    tab.keyboard.type("0.25")
    tab.keyboard.press("Enter")
    tab.keyboard.press("n")
    tab.keyboard.press("ArrowLeft")
    assert "label: no" in tab.inner_text("#masthead")
    tab.keyboard.press("Backspace")
    assert save(tab, tmp_path) == {"a": 1.0, 'b,"2"': 0.25}
    tab.reload()
    assert "2 labelled" in tab.inner_text("#masthead"), "the browser keeps labels that are not saved yet"


def test_what_a_model_wrote_is_text_on_the_sheet(tab: Page, tmp_path: Path) -> None:
    open_sheet(tab, tmp_path, item("a", question=HOSTILE))
    assert tab.inner_text(".sheet pre") == HOSTILE
    assert tab.title() == "Cases to label"
    assert tab.locator("main img").count() == 0
