"""From the verdict to the answer that was wrong, as somebody walks who has never seen the page."""

from __future__ import annotations

from typing import Any


def test_two_clicks_lead_from_a_missed_gate_to_the_answer_and_its_target(
    make_run: Any, open_page: Any, make_record: Any
) -> None:
    right = [make_record(f"s{number}") for number in range(40)]
    wrong = make_record("ke", answer="I do not know.", target="Nairobi", outcome="failed", scores={"exact_match": 0.0})
    page = open_page(make_run("walk", [*right, wrong], gate=["capitals.exact_match >= 0.99"]))
    page.locator(".gate.bad a").click()
    page.locator(".line.row").first.click()
    page.wait_for_selector(".case-body")
    assert page.locator(".case h2").inner_text().endswith("ke")
    assert "I do not know." in page.locator(".case-body").inner_text()
    assert "Nairobi" in page.locator(".case-body").inner_text()
    assert page.locator(".case-body code").first.inner_text() == "pytest 'cases/test_capitals.py::test_capitals[ke]'"
