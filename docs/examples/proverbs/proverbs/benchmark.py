"""The benchmark `proverbs`: complete the last word of a proverb, in two languages."""

from collections.abc import Sequence

from evalsuite import Benchmark, Dataset, Metric, Sample, Setup, exact_match, generate
from evalsuite.reports import Chart, Column, Section, Series, Table
from evalsuite.results import Estimate, RunView, Tally

PROVERBS_BY_LANGUAGE = {
    "en": ["Better late than never", "Practice makes perfect", "Time is money", "Haste makes waste"],
    "de": ["Übung macht den Meister", "Morgenstund hat Gold im Mund", "Zeit ist Geld", "Eile mit Weile"],
}


def load(setup: Setup) -> Dataset:
    """Make one sample per proverb; its language is a tag, for grouping and for gates."""
    samples = []
    for language, proverbs in PROVERBS_BY_LANGUAGE.items():
        for number, proverb in enumerate(proverbs, 1):
            beginning, _, end = proverb.rpartition(" ")
            question = f"Complete the proverb with one word: {beginning} ..."
            samples.append(Sample(f"{language}-{number}", question, end, tags={"language": language}))
    return Dataset(samples, "eight proverbs")


def gap(tally: Tally) -> Estimate | None:
    """Compute the distance between the languages' accuracies: a derived metric, not a mean over cases."""
    means = [cases.mean("exact_match") for cases in tally.groups("language").values()]
    measured = [mean for mean in means if mean is not None]
    return Estimate(max(measured) - min(measured), n=len(tally)) if len(measured) > 1 else None


def report(views: Sequence[RunView]) -> Section:
    """Make a table with one row per run and language, and a bar chart of the same numbers."""
    groups = [(view, language, cases) for view in views for language, cases in view.tally.groups("language").items()]
    columns = [Column("model"), Column("language"), Column("proverbs", "count"), Column("right", "percent")]
    rows = [[view.label, language, len(cases), cases.estimate("exact_match")] for view, language, cases in groups]
    labels = [f"{view.label}, {language}" for view, language, _ in groups]
    series = [Series("right", [cases.estimate("exact_match") for *_, cases in groups])]
    return Section(
        "Proverbs",
        [
            Table("Right by language", columns, rows, f"Gap between the languages: {_gaps(views)}."),
            Chart("bars", "proverbs_by_language", "Proverbs completed", labels, series, limits=(0.0, 1.0)),
        ],
    )


def _gaps(views: Sequence[RunView]) -> str:
    gaps = [gap(view.tally) for view in views]
    return ", ".join("unknown" if one is None else f"{one.value:.2f}" for one in gaps)


PROVERBS = Benchmark(
    name="proverbs",
    title="Proverbs",
    load=load,
    solver=lambda setup: generate(max_tokens=8, temperature=0),
    scorers=lambda setup: [exact_match()],
    report=report,
    derived={"gap": gap},
    metrics={"gap": Metric(range=(0.0, 1.0), better="lower")},
    primary="exact_match",
)
