"""`@benchmark(cluster=...)`: questions about one document count together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

DOCUMENTS = """
from evalsuite import LazySamples, Sample, benchmark, exact_match, generate

def make(n):
    n = int(n)
    return Sample(
        id=f"{n}", input="yes" if n < 20 else "no", target="yes", tags={"kind": "even"}, metadata={"document": n // 5}
    )

LISTED = [make(n) for n in range(40)]
LAZY = LazySamples(range(40), make)

def stream():
    yield from LISTED

@benchmark("qa", SAMPLES, solver=generate(), scorers=[exact_match()], CLUSTER)
def test_qa(scores):
    assert scores["exact_match"] >= 0
"""


def run(suite: Suite, samples: str, cluster: str, *args: str) -> pytest.RunResult:
    text = DOCUMENTS.replace("SAMPLES,", f"{samples},").replace("CLUSTER", cluster)
    suite.pytester.makepyfile(test_capitals=text)
    return suite.run(*args)


@pytest.mark.parametrize("samples", ["LISTED", "LAZY", "stream"])
@pytest.mark.parametrize("cluster", ["'document'", "lambda sample: sample.metadata['document']"])
def test_the_interval_counts_documents_not_questions(suite: Suite, samples: str, cluster: str) -> None:
    gate = "--gate=qa.exact_match >= 0.2 @95%"
    assert run(suite, samples, "pool=False", gate).ret == 0, "40 independent questions"
    assert run(suite, samples, f"cluster={cluster}", gate).ret == 10, "8 documents"
    tags = {record["case"].partition("[")[2]: record["tags"] for record in suite.records()}
    assert tags["7]"] == {"kind": "even", "cluster": "1"}


def test_workers_see_the_same_clusters(suite: Suite) -> None:
    run(suite, "LISTED", "cluster='document'", "-n2")
    assert {record["tags"]["cluster"] for record in suite.records()} == set("01234567")


@pytest.mark.parametrize("cluster", ["'chapter'", "lambda sample: None"])
def test_a_sample_without_a_cluster_is_refused_by_name(suite: Suite, cluster: str) -> None:
    result = run(suite, "LISTED", f"cluster={cluster}")
    assert result.ret != 0
    output = result.stdout.str() + result.stderr.str()
    assert "sample 0 has no" in output
    assert "@benchmark(cluster=...) asks for" in output
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
