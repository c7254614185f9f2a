from .core.protocols import Benchmark, Dataset, Setup
from .core.types import Message, Metric, Record, Sample, Score, Transcript
from .engine.declaration import benchmark
from .engine.evaluate import evaluate
from .judges import rubric
from .results.runs import load_run
from .samples.files import iter_samples, load_samples
from .samples.lazy import LazySamples
from .scorers import contains, exact_match
from .solvers import generate

__version__: str

__all__ = [
    "Benchmark",
    "Dataset",
    "LazySamples",
    "Message",
    "Metric",
    "Record",
    "Sample",
    "Score",
    "Setup",
    "Transcript",
    "__version__",
    "benchmark",
    "contains",
    "evaluate",
    "exact_match",
    "generate",
    "iter_samples",
    "load_run",
    "load_samples",
    "rubric",
]
