"""The shipped tools: every query can be solved, and hostile arguments are refused or harmless."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.tool_eyes.dataset import load_dataset
from evalsuite.benchmarks.tool_eyes.toolbox import SUBJECTS
from evalsuite.benchmarks.tool_eyes.toolbox.numbers import Arithmetic
from evalsuite.benchmarks.tool_eyes.toolbox.places import Files, Records
from evalsuite.benchmarks.tool_eyes.toolbox.texts import RandomData, Validation, compute_luhn_sum
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Sample
from evalsuite.tools.execution import convert_arguments, list_tool_documents, tools_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalsuite.core.types import Transcript

SAMPLES = {sample.id: sample for sample in load_dataset(Setup("tested", modes=("paper",))).samples}
SAMPLE = Sample(id="x", input="a query")
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

# For each query the calls that solve it, each with what must be found in its observation.
SOLUTIONS: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "tg-1": [("random_integers", {"low": 1, "high": 49, "count": 6}, r"^\[(\d+, ){5}\d+\]$")],
    "tg-2": [("random_uuids", {"count": 3}, rf'^\["{UUID}", "{UUID}", "{UUID}"\]$')],
    "tg-3": [
        ("placeholder_sentences", {"count": 1}, r'^\["The .*\."\]$'),
        ("change_case", {"text": "The quiet tram.", "style": "upper"}, "^THE QUIET TRAM.$"),
    ],
    "tg-4": [
        ("fictional_people", {}, r'"email": "\w+\.\w+@example.com"'),
        ("change_case", {"text": "Ada Alder", "style": "snake"}, "^ada_alder$"),
    ],
    "du-1": [("validate_card_number", {"number": "4539 1488 0343 6467"}, '"valid": true')],
    "du-2": [
        ("validate_isbn", {"isbn": "978-0-306-40615-7"}, '"valid": true'),
        ("validate_isbn", {"isbn": "978-0-306-40615-8"}, '"valid": false'),
    ],
    "du-3": [
        (
            "count_text",
            {"text": "Rain fell all night. The river rose. By morning the bridge was gone."},
            '"words": 13, "sentences": 3',
        )
    ],
    "du-4": [
        (
            "text_similarity",
            {"first": "the red boat left the harbour", "second": "the blue boat left the bay", "method": "words"},
            r"^0\.4286$",
        ),
        (
            "find_differences",
            {"first": "the red boat left the harbour", "second": "the blue boat left the bay"},
            r'"only_second": \["bay", "blue"\]',
        ),
    ],
    "rs-1": [
        ("today", {}, "^2024-05-14$"),
        ("weather_forecast", {"town": "norhaven", "day": "2024-05-15"}, '"rain_mm": 14'),
    ],
    "rs-2": [("search_bulletins", {"keywords": "herring festival"}, '"number": 103')],
    "rs-3": [
        ("search_bulletins", {"keywords": "ferry"}, r'"number": 106.*"number": 101'),
        ("read_bulletin", {"number": 106}, "on 15 May between 08:00 and 14:00"),
    ],
    "rs-4": [
        ("search_bulletins", {"keywords": "library"}, '"number": 105'),
        ("read_bulletin", {"number": 105}, "begins in September and is planned to cost 2.3 million"),
    ],
    "pl-1": [("split_bill", {"total": 84, "people": 3, "tip_percent": 10}, '"each": 30.8')],
    "pl-2": [
        (
            "free_times",
            {"day": "2024-05-15"},
            r'"08:00", "end": "09:00".*"10:30", "end": "13:00".*"14:00", "end": "18:00"',
        )
    ],
    "pl-3": [
        ("ask_to_user", {"question": "When is it?"}, "on 2024-05-17 from 14:00 to 14:30"),
        (
            "add_event",
            {"day": "2024-05-17", "start": "14:00", "end": "14:30", "title": "Dentist"},
            "added 'Dentist' on 2024-05-17 from 14:00 to 14:30",
        ),
    ],
    "pl-4": [
        ("list_events", {"day": "2024-05-16"}, '"start": "08:30", "end": "09:30", "title": "Piano lesson"'),
        ("cancel_event", {"day": "2024-05-16", "title": "piano lesson"}, "cancelled 'Piano lesson'"),
        ("add_event", {"day": "2024-05-16", "start": "08:30", "end": "09:30", "title": "Walk with Nora"}, "added"),
    ],
    "ir-1": [("find_city", {"name": "graz"}, '"country": "Austria".*"capital": 0')],
    "ir-2": [
        ("find_companies", {"city": "Vienna", "sector": "toys"}, "Brightkite Toys"),
        ("find_products", {"company": "Brightkite Toys"}, r'^\[\{"name": "Paper kite".*?"price": 9.9'),
    ],
    "ir-3": [("run_select", {"query": "SELECT sum(employees) AS n FROM companies WHERE sector = 'energy'"}, "860")],
    "ir-4": [("list_tables", {}, "cities.*companies.*products")],
    "am-1": [("calculate", {"expression": "0.17 * 2340 + sqrt(1764)"}, r"^439\.8$")],
    "am-2": [
        ("add_days", {"day": "2024-02-20", "days": 100}, "^2024-05-30$"),
        ("weekday", {"day": "2024-05-30"}, "^Thursday$"),
    ],
    "am-3": [
        ("append_line", {"name": "shopping.txt", "line": "eggs"}, "23 bytes"),
        ("read_file", {"name": "shopping.txt"}, "^bread\nmilk\napples\neggs\n$"),
    ],
    "am-4": [
        ("read_file", {"name": "expenses.csv"}, r"12\.50\n.*48\.00\n.*17\.25"),
        ("write_file", {"name": "total.txt", "text": "77.75"}, "total.txt now has 5 bytes"),
        ("list_files", {}, '"total.txt": 5'),
    ],
    "ft-1": [("compound_interest", {"amount": 2000, "rate_percent": 3, "years": 5}, r"^2318\.55$")],
    "ft-2": [
        ("loan_payment", {"amount": 12000, "rate_percent": 6, "months": 24}, r"^531\.85$"),
        ("loan_payment", {"amount": 12000, "rate_percent": 6, "months": 36}, r"^365\.06$"),
    ],
    "ft-3": [
        ("list_symbols", {}, '"ALDW": "Alderwind"'),
        ("highest_and_lowest", {"symbol": "aldw"}, r'"highest": \{"day": "2024-05-14", "price": 47.76\}'),
    ],
    "ft-4": [
        ("moving_average", {"symbol": "EMBR", "days": 5}, r"^15\.086$"),
        ("moving_average", {"symbol": "EMBR", "days": 20}, r"^15\.873$"),
    ],
}


@pytest.mark.parametrize("query", sorted(SAMPLES))
def test_every_shipped_query_can_be_solved(query: str, play: Callable[..., Transcript]) -> None:
    solution = SOLUTIONS[query]
    turns = [
        f"Thought: {number}\nAction: {name}\nAction Input: {json.dumps(arguments)}"
        for number, (name, arguments, _) in enumerate(solution)
    ]
    answer = json.dumps({"answer": str(SAMPLES[query].target)})
    transcript = play(SAMPLES[query], [*turns, f"Thought: done\nAction: finish\nAction Input: {answer}"])
    calls = [event for event in transcript.events if event["kind"] == "call"]
    assert transcript.facts["faults"] == {}
    assert transcript.facts["ended"] == "finish"
    for (_, _, wanted), call in zip(solution, calls, strict=False):
        assert re.search(wanted, call["observation"], re.DOTALL), call["observation"]


def test_what_is_drawn_at_random_is_the_same_in_every_run_of_a_query() -> None:
    samples = [Sample(id=name, input=text) for name, text in ("aq", "bq", "cr")]
    draws = [RandomData(sample).random_integers(0, 10**9, 5) for sample in samples]
    assert draws[0] == draws[1] != draws[2]


def test_every_tool_documents_itself_and_each_of_its_parameters() -> None:
    for subject, kind in SUBJECTS.items():
        for document in list_tool_documents(kind):
            assert document.description, subject
            assert all(schema.get("description") for schema in document.properties.values())


@pytest.fixture
def files() -> Iterator[Files]:
    made = Files(SAMPLE)
    yield made
    made.close()


NAMES = [
    "../secret.txt", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "C:x", "x\0y", "x\ny", "~/x/y",
    "é" * 60, "x" * 5000, "\u202e/..",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_means_another_place_is_refused_by_every_file_tool(files: Files, name: str) -> None:
    for attempt, arguments in (
        (files.read_file, (name,)),
        (files.write_file, (name, "x")),
        (files.append_line, (name, "x")),
        (files.delete_file, (name,)),
        (files.rename_file, ("meeting.txt", name)),
        (files.rename_file, (name, "new.txt")),
    ):
        with pytest.raises(ValueError, match="plain name") as refused:
            attempt(*arguments)
        assert str(files.folder) not in str(refused.value)
    assert sorted(files.list_files()) == ["expenses.csv", "meeting.txt", "shopping.txt"]


@given(st.text(max_size=40))
def test_no_name_writes_outside_of_the_folder(name: str) -> None:
    made = Files(SAMPLE)
    try:
        made.write_file(name, "x")
    except ValueError:
        assert len(made.list_files()) == 3
    else:
        assert (made.folder / name).resolve().parent == made.folder
    finally:
        made.close()


def test_files_are_bounded_in_size_and_number_and_gone_in_the_end() -> None:
    made = Files(SAMPLE)
    with pytest.raises(ValueError, match="at most 20000 characters"):
        made.write_file("big.txt", "x" * 10_000_000)
    for number in range(47):
        made.write_file(f"{number}.txt", "")
    with pytest.raises(ValueError, match="number of files"):
        made.write_file("one too many.txt", "")
    made.close()
    assert not made.folder.exists()


def test_one_episode_s_files_are_not_another_s() -> None:
    one, other = Files(SAMPLE), Files(SAMPLE)
    one.write_file("mine.txt", "x")
    one.delete_file("meeting.txt")
    assert sorted(other.list_files()) == ["expenses.csv", "meeting.txt", "shopping.txt"]
    with pytest.raises(ValueError, match=r"no file 'mine\.txt'"):
        other.read_file("mine.txt")
    one.close()
    other.close()


@pytest.fixture
def records() -> Iterator[Records]:
    made = Records(SAMPLE)
    yield made
    made.close()


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM cities",
        "DROP TABLE cities",
        "UPDATE cities SET name = 'x'",
        "INSERT INTO cities SELECT * FROM cities",
        "SELECT 1; DROP TABLE cities",
        "ATTACH 'stolen.db' AS stolen",
        "PRAGMA table_info(cities)",
        "SELECT * FROM pragma_table_info('cities')",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')",
        "SELECT randomblob(5)",
        "SELECT zeroblob(1000000000)",
        "SELECT replace(hex(zeroblob(5000)), '0', 'xxxxxxxxxx')",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
        "SELECT count(*) FROM cities a, cities b, cities c, cities d, cities e, cities f",
        "SELECT" + " (" * 900,
        "x" * 5000,
    ],
)
def test_a_query_that_writes_reaches_out_or_never_ends_is_refused(records: Records, query: str) -> None:
    before = records.run_select("SELECT count(*) AS n FROM cities")
    with pytest.raises(ValueError, match=r"database refused|at most 2000"):
        records.run_select(query)
    assert records.run_select("SELECT count(*) AS n FROM cities") == before == [{"n": 15}]
    assert not list(Path.cwd().glob("*.db"))


@pytest.mark.parametrize("text", ["x' OR '1'='1", "'; DROP TABLE cities; --", '" OR 1=1 --', "%", "_" * 9])
def test_sql_in_a_look_up_is_only_text(records: Records, text: str) -> None:
    with pytest.raises(ValueError, match="no city"):
        records.find_city(text)
    assert records.find_companies(city=text) == []
    assert records.find_products(text) == []
    assert len(records.run_select("SELECT * FROM cities")) == 15


def test_a_query_shows_a_bounded_number_of_rows(records: Records) -> None:
    assert len(records.run_select("SELECT * FROM cities, companies")) == 20


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-2 ** 2", -4),
        ("2 ** 3 ** 2", 512),
        ("2 ** -1", 0.5),
        ("7 // 2 + 7 % 4", 6),
        ("10 / 4", 2.5),
        ("0.1 + 0.2", 0.3),
        ("--3", 3),
        ("sqrt(2) * sqrt(2)", 2.0),
        ("abs(-5) + round(2.6)", 8),
        ("2^10", 1024),
        (".5 * 4.", 2.0),
    ],
)
def test_the_calculator_follows_the_rules_of_arithmetic(expression: str, value: float) -> None:
    assert Arithmetic(SAMPLE).calculate(expression) == pytest.approx(value)


@given(
    st.recursive(
        st.integers(0, 50).map(str),
        lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        max_leaves=6,
    )
)
def test_the_calculator_agrees_with_python(expression: str) -> None:
    # The expression is the test's own, made of numbers, brackets and three signs.
    assert Arithmetic(SAMPLE).calculate(expression) == eval(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd').read()",
        "9**9**9**9",
        "10**61",
        "2**100000",
        "1" * 200,
        "(" * 150 + "1" + ")" * 150,
        "-" * 250 + "1",
        "1 +",
        "1 2",
        "(1",
        "sqrt 4",
        "x",
        "",
        "(-8) ** 0.5",
        "1" + "+1" * 1000,
    ],
)
def test_code_and_monstrous_expressions_are_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Arithmetic(SAMPLE).calculate(expression)


@given(st.text("0123456789+-*/%^(). sqrtab", max_size=40))
def test_any_expression_is_a_number_or_an_arithmetic_error(expression: str) -> None:
    try:
        value = Arithmetic(SAMPLE).calculate(expression)
    except (ValueError, ArithmeticError):
        return
    assert abs(value) <= 10**60


def test_check_digits_are_those_of_published_examples() -> None:
    validation = Validation(SAMPLE)
    # 7992739871 with the check digit 3 is the usual worked example of the Luhn algorithm; 0-306-40615-2 and
    # 978-0-306-40615-7 that of the ISBN Users' Manual.
    assert [compute_luhn_sum(f"7992739871{digit}") == 0 for digit in range(10)].index(True) == 3
    assert validation.validate_card_number("4111 1111 1111 1111")["valid"] is True
    assert validation.validate_card_number("4111 1111 1111 1112")["valid"] is False
    assert validation.validate_card_number("79927398713")["valid"] is False  # too short for a card
    assert validation.validate_isbn("0-306-40615-2")["valid"] is True
    assert validation.validate_isbn("080442957X")["valid"] is True
    assert validation.validate_isbn("0804429570")["valid"] is False
    assert validation.validate_email("a.b+c@mail.example.org")["valid"] is True
    assert validation.validate_email("a@b")["valid"] is False
    assert validation.validate_date("2024-02-29")["valid"] is True
    assert validation.validate_date("2023-02-29")["valid"] is False


HUGE: dict[str, Any] = {
    "string": "x" * 10_000_000,
    "integer": 10**300,
    "number": 1e300,
    "boolean": True,
    "array": ["x" * 100] * 100_000,
    "object": {str(number): 1.0 for number in range(100_000)},
}


@contextmanager
def closed(made: Any) -> Iterator[Any]:
    """A subject's object, closed at the end if it needs that."""
    yield made
    getattr(made, "close", lambda: None)()


@pytest.mark.parametrize("subject", sorted(SUBJECTS))
def test_enormous_arguments_are_refused_or_harmless(subject: str) -> None:
    with closed(SUBJECTS[subject](SAMPLE)) as made:
        for entry in tools_of(made):
            huge = {name: HUGE[schema["type"]] for name, schema in entry.document.properties.items()}
            fitted, faults = convert_arguments(entry.document, huge)
            if faults:
                continue
            try:
                result = entry(**fitted)  # type: ignore[operator] # declared tools can be called
            except (ValueError, ArithmeticError):
                continue
            assert len(json.dumps(result)) < 10_000


def test_every_subject_makes_its_tools_from_nothing_but_the_sample() -> None:
    for kind in SUBJECTS.values():
        made = kind(SAMPLE)
        assert tools_of(made)
        if isinstance(made, (Files, Records)):
            made.close()
