"""Tables as people write them score 1.0 against themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalsuite.metrics.tables import Format, table_score

WIKIPEDIA = Path(__file__).parents[5] / "shared/data/wikitables"
OWN: dict[str, tuple[Format, str]] = {
    "wide spans and links": (
        "html",
        """<table class="wikitable sortable" border="1"><caption>Lifts<sup><a href="#n1">[1]</a></sup></caption>
        <tr><th rowspan="2">Athlete</th><th colspan="2">Snatch</th><th rowspan="2">Total</th></tr>
        <tr><th>1</th><th>2</th></tr>
        <tr><td><a href="/wiki/X" title="X">Marta&nbsp;Ilves</a></td><td>90.0</td><td><s>95.0</s></td>
        <td><b>90.0</b></td></tr>
        <tr><td rowspan="2">Ona Pires<br />(POR)</td><td colspan="2" style="width:9em">&ndash;</td>
        <td>—</td></tr>
        <tr><td>88</td><td>91</td><td>91</td></tr></table>""",
    ),
    "cells that nobody closed": (
        "html",
        """<table><tr><th>Year<th>Title<tr><td>1998<td>A &amp; B<td><tr><td colspan=3>none
        <table><tr><td>in it</table></table>""",
    ),
    "booktabs with notes": (
        "latex",
        r"""\begin{table*}[t]\centering\caption{Results ($\uparrow$ is better).}\label{tab:main}
        \begin{threeparttable}\begin{tabular}{@{}l*{2}{S[table-format=2.1]}r@{}}\toprule
        & \multicolumn{2}{c}{Accuracy (\%)} & \\ \cmidrule(lr){2-3}
        Method & {Dev} & {Test} & Time\tnote{a} \\ \midrule
        Ours & \textbf{81.2}$_{\pm 0.3}$ & \underline{79.9} & 12\,h \\[2pt]
        \rowcolor{gray!10} \citet{a2020} & 80.1 & 78.4 & -- \\ \bottomrule
        \end{tabular}\begin{tablenotes}\item[a] On one machine.\end{tablenotes}\end{threeparttable}\end{table*}""",
    ),
    "rules everywhere": (
        "latex",
        r"""\begin{longtable}{|p{2cm}|c|} \hline Name & N \\ \hline\endhead \hline\endfoot
        \multirow{2}{*}{\makecell{two\\lines}} & 1 \\ \cline{2-2} & 2 \\ \hline\end{longtable}""",
    ),
    "two named tables": (
        "markdown",
        "Team:\n| | Wins | Losses |\n| Otters | 12 | |\n\nPlayer:\n| | Points |\n| Ann \\| Bea | 4 |",
    ),
    "aligned columns": ("markdown", "Name | N\n:--- | ---:\n**a** | 1,000\n`b` | [two](http://x.example)"),
}


@pytest.mark.parametrize("name", OWN)
def test_a_table_of_every_day_scores_one_against_itself(name: str) -> None:
    written, table = OWN[name]
    assert _own_score(table, written) == (1.0, 1.0)


@pytest.mark.skipif(not WIKIPEDIA.is_dir(), reason="the folder shared/data/wikitables is not beside the project")
def test_tables_of_wikipedia_score_one_against_themselves() -> None:
    tables = {path.name: path.read_text("utf-8") for path in sorted(WIKIPEDIA.glob("*.html"))}
    assert len(tables) > 100
    scores = {name: _own_score(table, "html") for name, table in tables.items()}
    assert {name: score for name, score in scores.items() if score != (1.0, 1.0)} == {}


def _own_score(table: str, written: Format) -> tuple[float, ...]:
    score = table_score(table, table, format=written)
    return score.value, score.form
