"""Metrics of DeepEval, Ragas, autoevals and Inspect as scorers: their model calls are those of the run's judge."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import scorers
from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.scorers.foreign import (
    ForeignCase,
    convert_to_snake_case,
    find_documents,
    make_foreign_scorer,
    make_score,
)

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

# Not in a dependency group: their bounds would hold back the packages of all others. pytest-asyncio comes with some.
WHY = "cannot be imported here; try: uv run --with PACKAGE pytest -p no:asyncio tests/plugin/test_foreign_scorers.py"
CASES = """
from functools import partial
from evalsuite import Sample, benchmark
{imports}

SAMPLES = [Sample(id="a", input="The capital of France?", target="Paris", metadata={{"documents": ["Paris is it."]}})]

def answer(sample, model):
    return "Paris"

@benchmark("foreign", SAMPLES, solver=answer, scorers=[{scorers}])
def test_foreign(scores):
    pass
"""
# The judge writes what each package expects, and says in a file that it was asked.
APP = """
import json

def echo(messages):
    return ""

def judge(messages, tools=None, **params):
    with open("asked", "a") as file:
        file.write("x")
    text = json.dumps(messages)
    if tools:
        name = tools[0]["function"]["name"]
        arguments = ARGUMENTS
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        return {"content": "", "tool_calls": [call]}
    return ANSWER
"""


def judged(suite: Suite, imports: str, made: str, answer: str = "''", arguments: str = "{}") -> dict[str, Any]:
    (suite.path / "app.py").write_text(APP.replace("ANSWER", answer).replace("ARGUMENTS", arguments), "utf-8")
    (suite.path / "test_capitals.py").write_text(CASES.format(imports=imports, scorers=made), "utf-8")
    quiet = ("--judge-model=function:app:judge", "-Wignore")
    suite.run("--run=first", *quiet, fresh=True)
    (record,) = suite.records("first")
    assert record["error"] is None
    asked = (suite.path / "asked").read_text()
    assert record["judge_usage"]["calls"] == len(asked) > 0
    suite.run("--replay=first", "--run=again", *quiet, fresh=True)
    (again,) = suite.records("again")
    assert again["scores"] == record["scores"]
    assert (suite.path / "asked").read_text() == asked
    return record


# Older versions lack DeepEval's metrics without a model, and name the parameters otherwise.
DEEPEVAL = """
from deepeval import test_case
from deepeval.metrics import BaseMetric, GEval
from evalsuite.scorers import from_deepeval

Params = getattr(test_case, "SingleTurnParams", None) or test_case.LLMTestCaseParams

class SameText(BaseMetric):
    __name__ = "Same Text"

    def measure(self, case, *args, **more):
        self.score = float(case.actual_output == case.expected_output)
        return self.score

    async def a_measure(self, case, *args, **more):
        return self.measure(case)

    def is_successful(self):
        return self.score == 1
"""


def test_a_metric_of_deepeval_asks_the_judge(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("deepeval", reason=WHY)
    # A metric that is made without a model demands a key, which nothing uses.
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    record = judged(
        suite,
        DEEPEVAL,
        "from_deepeval(partial(GEval, name='Right Answer', criteria='Is it right?', "
        "evaluation_params=[Params.ACTUAL_OUTPUT])), from_deepeval(SameText, judge=False), "
        "from_deepeval(GEval(name='Own', evaluation_steps=['Look.'], evaluation_params=[Params.INPUT]))",
        """json.dumps({"steps": ["Look."], "score": 8, "reason": "It is right."})""",
    )
    assert record["scores"] == {"right_answer_geval": 0.8, "same_text": 1.0, "own_geval": 0.8}
    assert record["notes"]["right_answer_geval"] == "It is right."


def test_a_metric_of_ragas_asks_the_judge(suite: Suite) -> None:
    pytest.importorskip("ragas", reason=WHY)
    record = judged(
        suite,
        "from openai import AsyncOpenAI\nfrom ragas.llms import llm_factory\n"
        "from ragas.metrics.collections import ContextPrecision, ContextUtilization, ExactMatch\n"
        "from evalsuite.scorers import from_ragas",
        "from_ragas(ContextPrecision), from_ragas(ExactMatch(), judge=False), "
        "from_ragas(partial(ExactMatch, name='same'), judge=False), "
        "from_ragas(ContextUtilization(llm_factory('x', client=AsyncOpenAI(api_key='none'))))",
        """json.dumps({"reason": "It helps.", "verdict": 1})""",
        """{"reason": "It helps.", "verdict": 1}""",
    )
    assert record["scores"] == {
        "exact_match": 1.0,
        "same": 1.0,
        "context_precision": pytest.approx(1.0),
        "context_utilization": pytest.approx(1.0),
    }


def test_a_scorer_of_autoevals_asks_the_judge(suite: Suite) -> None:
    pytest.importorskip("autoevals", reason=WHY)
    record = judged(
        suite,
        "from autoevals import Factuality, Levenshtein\nfrom evalsuite.scorers import from_autoevals",
        "from_autoevals(Factuality()), from_autoevals(Levenshtein, judge=False)",
        arguments="""{"choice": "C", "reasons": "It is the same."}""",
    )
    assert record["scores"] == {"factuality": 1.0, "levenshtein": 1.0}
    assert record["notes"]["factuality"] == "It is the same."


def test_a_scorer_of_inspect_asks_the_judge(suite: Suite) -> None:
    pytest.importorskip("inspect_ai", reason=WHY)
    record = judged(
        suite,
        "from inspect_ai.scorer import includes, model_graded_qa\nfrom evalsuite.scorers import from_inspect",
        "from_inspect(model_graded_qa()), from_inspect(includes(), judge=False)",
        "'It is right. GRADE: C'",
    )
    assert record["scores"] == {"model_graded_qa": 1.0, "includes": 1.0}
    assert "It is right" in record["notes"]["model_graded_qa"]


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (scorers.from_deepeval, "deepeval"),
        (scorers.from_ragas, "ragas"),
        (scorers.from_autoevals, "autoevals"),
        (scorers.from_inspect, "inspect-ai"),
    ],
)
def test_a_package_that_is_missing_is_named(make: Any, package: str) -> None:
    try:
        make(object())
    except SettingsError as error:
        assert str(error) == f"{package} is not installed here: pip install {package}"  # noqa: PT017 - it may be there


JUDGED_BY_OWN = """
from evalsuite import Sample, benchmark
from evalsuite.scorers.foreign import make_foreign_scorer

async def measure(metric, case):
    if metric == "fails":
        raise ValueError("no luck")
    if metric == "blind":
        case.judge.chat(case.question)
    try:
        if metric != "right":
            case.judge.chat(case.question)
    except Exception as error:
        raise ValueError("hidden") from error
    return {"own": 1.0}

def answer(sample, model):
    return "Paris"

def declare(name, metric, judge):
    scorer = make_foreign_scorer("pytest", metric, measure, None, judge=judge)
    @benchmark(name, [Sample(id="a", input="?")], solver=answer, scorers=[scorer])
    def test(scores):
        pass
    return test

test_asks = declare("asks", "asks", True)
test_plain = declare("plain", "asks", False)
test_blind = declare("blind", "blind", False)
test_fails = declare("fails", "fails", True)
test_right = declare("right", "right", True)
"""


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        ("asks", "is the server running"),
        ("plain", "the metric raised ValueError: hidden"),
        ("blind", "leave out judge=False"),
        ("fails", "pytest: the metric raised ValueError: no luck"),
        ("right", None),
    ],
)
def test_a_metric_that_raises_is_the_cases_error(suite: Suite, benchmark: str, words: str | None) -> None:
    (suite.path / "test_capitals.py").write_text(JUDGED_BY_OWN, "utf-8")
    suite.run("--judge-model=gone", "--judge-base-url=http://127.0.0.1:9/v1", "-k", f"test_{benchmark}")
    (record,) = suite.records()
    assert record["error"] is None if words is None else words in record["error"]
    assert record["scores"] == ({"own": 1.0} if words is None else {})


def test_a_case_is_read_as_foreign_metrics_expect_it() -> None:
    sample = Sample("a", [{"role": "user", "content": "Hi"}], ["x", "y"], metadata={"documents": ["m"]})
    spans = ({"kind": "span", "documents": ["d1"]}, {"kind": "span"})
    case = ForeignCase(sample, Transcript("Ho", events=spans), find_documents, None)
    assert (case.question, case.targets, case.documents) == ("Hi", ["x", "y"], ["d1"])
    assert [message.content for message in case.messages] == ["Hi", "Ho"]
    assert find_documents(sample, Transcript("", facts={"documents": ["f"]})) == ["f"]
    assert find_documents(sample, Transcript("")) == ["m"]
    empty = ForeignCase(Sample("a", ()), Transcript(""), find_documents, None)
    assert (empty.question, empty.targets) == ("", [])
    with pytest.raises(ScoringError, match="name a judge"):
        _ = empty.judge


def test_a_fact_called_documents_harms_no_metric_that_reads_none() -> None:
    async def measure(metric: Any, case: ForeignCase) -> dict[str, float]:
        return {"own": 1.0}

    scorer: Any = make_foreign_scorer("pytest", "right", measure, None, judge=False)
    assert asyncio.run(scorer(Sample("a", "?"), Transcript("Ho", facts={"documents": 3}))) == {"own": 1.0}


def test_names_and_numbers_are_converted() -> None:
    assert convert_to_snake_case("Answer Relevancy [GEval]") == "answer_relevancy_geval"
    assert make_score(True, "yes") == Score(1.0, "yes")
    for value in (None, "good"):
        with pytest.raises(ScoringError, match="in place of a number"):
            make_score(value)


def test_arguments_distinguish_metrics_in_fingerprints() -> None:
    class Metric:
        def __init__(self, threshold: float = 0.5) -> None:
            self.threshold, self.model = threshold, object()

    async def measure(metric: Any, case: ForeignCase) -> dict[str, float]:
        return {}

    def arguments(metric: Any) -> str:
        made: Any = make_foreign_scorer("pytest", metric, measure, None, judge=False)
        return str(made.arguments)

    texts = [arguments(metric) for metric in (Metric, Metric(), Metric(0.7), partial(Metric, threshold=0.7))]
    assert ["threshold=0.5" in text for text in texts] == [False, True, False, False]
    assert ["threshold=0.7" in text for text in texts] == [False, False, True, True]
    assert json.dumps(texts).count("Metric") >= 4
