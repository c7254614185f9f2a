"""`evaluate` runs what pytest runs, from a script, a notebook or a coroutine, and leaves the same run."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import Benchmark, Sample, benchmark, evaluate, exact_match, generate, load_run
from evalsuite.core.errors import SettingsError
from evalsuite.core.protocols import Dataset
from evalsuite.decisions.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.engine.evaluate import EvaluatedRun
    from tests.plugin.conftest import Suite

SAMPLES = [Sample(id=str(number), input="Paris", target="Paris") for number in range(4)]

TIMES = {"seconds", "solving_seconds"}

CASES = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [
    Sample(id="fr", input="Paris", target="Paris", tags={"region": "eu"}),
    Sample(id="it", input="Rome", target="Rome", metadata={"hops": 2}),
    Sample(id="jp 東", input="Osaka", target="Tokyo"),
]

def crash(sample, transcript):
    if sample.id == "it":
        raise ValueError("no score for Rome")
    return {"length": len(transcript.answer)}

@benchmark("capitals", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match(), crash], epochs=2, at_least=1)
def test_capitals(scores, sample, model):
    assert model.chat(sample.input).text == sample.input
    assert scores["exact_match"] == 1.0
"""

SCRIPT = """
import json, sys
from evalsuite import evaluate
import test_capitals

gates = ["capitals.exact_match >= 0.9"]
run = evaluate(test_capitals.test_capitals, model="function:app:echo", run="here", gates=gates)
print(json.dumps([int(run.status), "pytest" in sys.modules, "_pytest" in sys.modules]))
"""


def echo(messages: list[dict[str, Any]]) -> str:
    return str(messages[-1]["content"])


@benchmark("echoed", SAMPLES, solver=generate(), scorers=[exact_match()])
def echoed(scores: dict[str, float]) -> None:
    assert scores["exact_match"] == 1.0


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_echoed(**settings: Any) -> EvaluatedRun:
    return evaluate(echoed, model=echo, **settings)


def without_times(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        json.loads(
            json.dumps({name: value for name, value in record.items() if name not in TIMES and name != "transcript"})
        )
        | {"answer": (record["transcript"] or {}).get("answer")}
        for record in records
    ]


def test_the_records_are_those_that_pytest_leaves_and_pytest_is_not_imported(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.path)
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    gate = "--gate=capitals.exact_match >= 0.9"
    status = suite.run("--run", "there", gate).ret
    script = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(script, capture_output=True, text=True, check=True, cwd=suite.path)
    assert json.loads(done.stdout) == [status, False, False]
    assert without_times(suite.records("here")) == without_times(suite.records("there"))
    assert (suite.path / "reports" / "here" / "report.html").is_file()


def test_an_event_loop_goes_on_while_a_run_is_awaited() -> None:
    async def count_while_running() -> tuple[int, EvaluatedRun]:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        run = await run_echoed()
        counting.cancel()
        return turns, run

    turns, run = asyncio.run(count_while_running())
    assert turns > 1
    assert run.status is Status.GOOD
    assert len(run.records) == len(SAMPLES)


def test_several_runs_are_awaited_at_once() -> None:
    async def gather() -> list[int]:
        runs = (run_echoed(limit=limit) for limit in (1, 2))
        return [len(run.records) for run in await asyncio.gather(*runs)]

    assert asyncio.run(gather()) == [1, 2]


def test_in_an_event_loop_reading_a_run_waits_for_its_end() -> None:
    async def read() -> list[str]:
        return [record.outcome for record in run_echoed().records]

    assert asyncio.run(read()) == ["passed"] * len(SAMPLES)


def test_a_run_shows_itself_in_a_notebook_without_trusting_its_texts() -> None:
    marked = "<script>x</script>"

    @benchmark("marked", [Sample(id="1", input="x", target="x")], solver=lambda *_: marked, scorers=[say])
    def one(scores: dict[str, float]) -> None:
        raise ValueError(marked)

    run = evaluate(one, model=echo)
    shown = run._repr_html_()
    assert "marked" in shown
    assert "<script" not in shown
    assert run.report.is_file()
    assert "cases failed" in repr(run)


def say(sample: Sample, transcript: Any) -> dict[str, float]:
    return {"length": float(len(transcript.answer) + len(sample.id))}


def test_a_benchmark_without_a_function_is_scored_and_gates_decide() -> None:
    own = Benchmark(
        name="own",
        title="Own",
        load=lambda _: Dataset([*SAMPLES, Sample(id="last", input="Rome", target="Oslo")], "here"),
        solver=lambda _: generate(),
        scorers=lambda _: [exact_match()],
    )
    run = evaluate(own, model=echo, limit=5, gates=["own.exact_match >= 0.9"])
    assert run.status is Status.GATE_MISSED
    assert {record.outcome for record in run.records} == {"passed"}
    assert run.records[-1].case == "own[last]"


def test_a_run_is_resumed_replayed_and_read_like_any_other() -> None:
    first = run_echoed(run="first")
    again = evaluate(echoed, replay="first", run="again")
    assert [record.scores for record in again.records] == [record.scores for record in first.records]
    resumed = run_echoed(resume="first")
    assert resumed.folder.name == "first"
    assert load_run(first.folder).info["command"].startswith("evaluate(")
    assert {record.usage.calls for record in resumed.records} == {1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"plan": True}, "evaluate.. takes no argument 'plan'"),
        ({"max_conections": 2}, "did you mean max_connections"),
        ({"gates": ["echoed.exact_mach >= 1"]}, "no such metric"),
        ({"model": lambda messages: ""}, "top level of a module"),
        ({"limit": -1}, "--limit -1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_before_anything_is_written(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=message):
        evaluate(echoed, **{"model": echo, **given})
    assert not (tmp_path / "reports").exists()


def test_a_function_that_only_pytest_can_run_is_refused() -> None:
    declared = benchmark("own", SAMPLES, solver=generate(), scorers=[exact_match()])

    @declared
    def takes_more(scores: dict[str, float], tmp_path: Path) -> None: ...

    @declared
    async def waits(scores: dict[str, float]) -> None: ...

    @pytest.mark.xfail
    @declared
    def is_marked(scores: dict[str, float]) -> None: ...

    refused: list[tuple[Callable[..., Any], str]] = [
        (takes_more, "takes tmp_path"),
        (waits, "is not a plain function"),
        (is_marked, "is marked with xfail"),
        (print, "give a function with @benchmark"),
    ]
    for function, message in refused:
        with pytest.raises(SettingsError, match=message):
            evaluate(function, model=echo)


def test_an_interruption_ends_the_run_which_can_be_resumed() -> None:
    interrupting = True

    def interrupt(sample: Sample, transcript: Any) -> dict[str, float]:
        if interrupting and sample.id == "2":
            raise KeyboardInterrupt
        return {"length": float(len(transcript.answer))}

    @benchmark("own", SAMPLES, solver=generate(), scorers=[interrupt])
    def own(scores: dict[str, float]) -> None:
        assert scores["length"]

    # A worker of xdist ignores this signal, and a shell's background job inherits that.
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate(own, model=echo, run="r")
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert load_run("r").info["stopped"] == "interrupted from the keyboard"
    interrupting = False
    run = evaluate(own, model=echo, resume="r")
    assert run.status is Status.GOOD
    assert len(run.records) == len(SAMPLES)
