"""Struc-Bench: can a model write a text's contents as tables in plain text, LaTeX and HTML?

Tang et al., "Struc-Bench: Are Large Language Models Good at Generating Complex Structured Tabular Data?", NAACL 2024,
arXiv 2309.08963. Three metrics score content and form separately: the table score (which agrees best with people), the
paper's own H-Score, and a judge's P-Score.
"""

from evalsuite.benchmarks.struc_bench.abilities import ABILITIES
from evalsuite.benchmarks.struc_bench.items import DEFAULT_MODES, MODES, load_dataset
from evalsuite.benchmarks.struc_bench.report import make_report
from evalsuite.benchmarks.struc_bench.scoring import compute_corpus_bleu, make_scorers, make_solver
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import SHARE, Metric

STRUC_BENCH = Benchmark(
    name="struc_bench",
    title="Struc-Bench: writing tables",
    primary="table_score",
    metrics={
        **dict.fromkeys(("table_*", "form_compiles", "p_readable", "error_free", *ABILITIES), SHARE),
        **dict.fromkeys(("bleu", "sacrebleu", "rouge_l*"), SHARE),
        "*_error": Metric(range=(0.0, 1.0), better="lower"),
        # `h_*_released` are sums of terms that may be negative, so they have no lower bound.
        **dict.fromkeys(("h_content_released", "h_format_released"), Metric()),
        **dict.fromkeys(("p_content", "p_format"), Metric(range=(0.0, 10.0))),
    },
    load=load_dataset,
    solver=make_solver,
    scorers=make_scorers,
    modes=MODES,
    default_modes=DEFAULT_MODES,
    report=make_report,
    derived={"sacrebleu": compute_corpus_bleu},
)

__all__ = ["STRUC_BENCH"]
