"""The list of cases: filters, search, keys, and the address that shows the same again."""

from __future__ import annotations

from typing import Any

import pytest

from evalsuite.core.types import Message, Transcript, Usage


@pytest.fixture
def folder(make_run: Any, make_record: Any) -> Any:
    records = [
        make_record(
            f"s{number:02}",
            outcome="failed" if number % 4 == 0 else "passed",
            scores={"exact_match": float(number % 4 != 0), "token_f1": number / 20},
            tags={"region": ["eu", "asia"][number % 2]},
            transcript=Transcript(f"answer {number}", (Message("user", f"hidden word number{number}x"),)),
            fingerprints={"input": "57ab57ab57ab57ab"},
        )
        for number in range(20)
    ]
    records.append(make_record("boom", outcome="error", scores={}, error="HTTP 500", cause="ModelError"))
    return make_run("listed", records, gate=["capitals[asia].token_f1 >= 0.4"])


def counted(page: Any) -> str:
    return str(page.locator("#tallies strong").first.inner_text())


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", "21 cases"),
        ("?outcome=failed", "5 of 21 cases"),
        ("?outcome=failed&outcome=error", "6 of 21 cases"),
        ("?tag=region%3Aasia", "10 of 21 cases"),
        ("?metric=token_f1&min=0.5&max=0.6", "3 of 21 cases"),
        ("?cause=ModelError", "1 of 21 cases"),
        ("?gate=0", "10 of 21 cases"),
        ("?tag=region%3Aasia&outcome=failed", "0 of 21 cases"),
    ],
)
def test_the_address_holds_the_filters(open_page: Any, folder: Any, query: str, count: str) -> None:
    assert counted(open_page(folder, f"#cases{query}")) == count


def test_search_finds_what_was_said_in_a_conversation(open_page: Any, folder: Any) -> None:
    page = open_page(folder, "#cases")
    page.keyboard.press("/")
    page.keyboard.type("NUMBER13x")
    page.get_by_text("1 of 21 cases").first.wait_for()
    assert page.locator(".line.row").inner_text().split("\n")[1] == "s13"
    assert page.url.endswith("q=NUMBER13x")


def test_search_does_not_find_the_names_of_fields(open_page: Any, folder: Any) -> None:
    assert counted(open_page(folder, "#cases?q=tool_call_id")) == "0 of 21 cases"


def test_search_does_not_find_facts_that_only_the_json_shows(make_run: Any, make_record: Any, open_page: Any) -> None:
    facts = {"label": "zebra", "judge": {"weights": ["zebra"]}}
    folder = make_run("facts", [make_record("one", facts=facts), make_record("two", answer="A zebra.")])
    assert counted(open_page(folder, "#cases?q=zebra")) == "1 of 2 cases"


def test_search_does_not_find_the_test_file_that_all_cases_share(open_page: Any, folder: Any) -> None:
    assert counted(open_page(folder, "#cases?q=test_capitals.py")) == "0 of 21 cases"


def test_search_does_not_find_fingerprints(open_page: Any, folder: Any) -> None:
    assert counted(open_page(folder, "#cases?q=57ab57ab")) == "0 of 21 cases"


def test_keys_walk_through_the_cases(open_page: Any, folder: Any) -> None:
    page = open_page(folder, "#cases?sort=case")
    page.locator("#rows").focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#case h2")
    first = page.locator("#case h2").inner_text()
    page.keyboard.press("j")
    assert first.split()[-1] == "s00"
    page.locator("#case h2", has_text="s01").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_selector("#case", state="hidden")


def test_the_back_button_returns_to_the_list(open_page: Any, folder: Any) -> None:
    page = open_page(folder, "#cases?sort=case")
    page.locator(".line.row").nth(3).click()
    page.wait_for_selector("#case h2")
    page.go_back()
    page.wait_for_selector("#case", state="hidden")
    assert counted(page) == "21 cases"


def test_means_of_the_filtered_cases_are_recomputed(open_page: Any, folder: Any) -> None:
    page = open_page(folder, "#cases?benchmark=capitals&tag=region%3Aasia")
    means = page.locator(".means").inner_text()
    assert "token_f1\n0.500" in means.replace("\n\n", "\n")


def test_a_heading_sorts(open_page: Any, folder: Any) -> None:
    page = open_page(folder, "#cases?metric=token_f1")
    page.get_by_role("button", name="token_f1").click()
    page.get_by_role("button", name="token_f1").click()
    assert page.locator(".line.row").first.inner_text().split("\n")[1] == "s19"


def test_only_rows_that_are_seen_exist(make_run: Any, make_record: Any, open_page: Any) -> None:
    page = open_page(make_run("many", [make_record(f"s{number:04}") for number in range(3000)]), "#cases")
    assert counted(page) == "3,000 cases"
    assert page.locator(".line.row").count() < 80
    page.locator("#rows").focus()
    page.keyboard.press("End")
    page.wait_for_selector("text=s2999")


def test_changes_against_the_baseline_are_filtered(make_run: Any, make_record: Any, open_page: Any) -> None:
    names = [f"s{number}" for number in range(6)]
    make_run("old", [make_record(name) for name in names])
    worse = [
        make_record(name, answer="Lyon", outcome="failed", scores={"exact_match": 0.0})
        if name == "s2"
        else make_record(name)
        for name in names
    ]
    page = open_page(make_run("new", worse, baseline=["old"]), "#cases?changed=lost")
    assert counted(page) == "1 of 6 cases"
    page.locator(".line.row").click()
    page.wait_for_selector(".pair")
    panes = page.locator(".pair > div").all_inner_texts()
    assert [pane.split("\n")[-1] for pane in panes][1] == "Paris"
    assert "Lyon" in panes[0]


def test_estimated_tokens_are_marked_in_the_list_and_in_the_case(
    open_page: Any, make_run: Any, make_record: Any
) -> None:
    counted_by = {"server": Usage(1, 20, 3), "us": Usage(2, 20, 3, estimated=1)}
    made = make_run("estimated", [make_record(name, usage=usage) for name, usage in counted_by.items()])
    page = open_page(made, "#cases?columns=case&columns=tokens")
    assert page.locator(".line.row").all_inner_texts() == ["server\n23", "us\n~23"]
    page.get_by_text("~23").click()
    page.get_by_text("20 read, 3 written, estimated for 1 of the calls").wait_for()
