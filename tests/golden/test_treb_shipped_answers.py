"""Every computable answer of the shipped samples, worked out anew by a pandas program of its own.

The programs read the CSV files as a user would, not through the loader. Answers in words that no program
can work out (summaries, titles) are in `IN_WORDS`: together the two lists must name every record.
"""

# ruff: noqa: PLW0108 - lambdas, so that the tables are read when a test runs and not on import

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evalsuite.benchmarks.treb.dataset import SHIPPED, SUBTASKS, find_files
from evalsuite.metrics.numbers import numeric_match
from evalsuite.metrics.text import HAN

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS: dict[str, dict[str, Any]] = {
    record["id"]: record for path in find_files(SHIPPED) for record in json.loads(path.read_text("utf-8"))
}


def table(name: str, **options: Any) -> Any:
    return pd.read_csv(SHIPPED / "csv" / f"{name}.csv", **options)


def names(values: Any, separator: str = ", ") -> str:
    return separator.join(map(str, values))


def most_correlated(frame: pd.DataFrame, target: str, others: list[str]) -> str:
    return str(frame[others].corrwith(frame[target]).abs().idxmax())


def fallen_pressure() -> Any:
    visits = table("clinic_visits")
    return visits.assign(fall=visits["Systolic before (mmHg)"] - visits["Systolic after (mmHg)"])


def fall(treatment: str) -> Any:
    visits = fallen_pressure()
    return visits.loc[visits["Treatment"] == treatment, "fall"]


def age_and_fall(treatment: str) -> float:
    visits = fallen_pressure().query(f"Treatment == '{treatment}'")
    return float(visits["Age"].corr(visits["fall"]))


def per_megawatt(fuel: str) -> Any:
    plants = table("power_plants")
    return (plants["Output 2022 (GWh)"] / plants["Capacity (MW)"])[plants["Fuel"] == fuel]


def capacity_factor(plant: str) -> float:
    row: Any = table("power_plants").set_index("Plant").loc[plant]
    return 100 * float(row["Output 2022 (GWh)"]) * 1000 / (float(row["Capacity (MW)"]) * 8760)


def quarter(name: str) -> Any:
    return table("accounts").set_index("Quarter").loc[name]


def iqr_outliers(values: Any) -> Any:
    first, third = values.quantile(0.25), values.quantile(0.75)
    reach = 1.5 * (third - first)
    return values[(values < first - reach) | (values > third + reach)]


def undiscounted_by_region() -> Any:
    orders = table("store_orders").query("`Discount (%)` == 0")
    return (orders["Units"] * orders["Unit price"]).groupby(orders["Region"]).sum()


def payroll_rise() -> float:
    staff = table("employees")
    ratings = staff.groupby("Department")["Rating"].transform("mean")
    return float((staff["Monthly salary"] * np.where(ratings > 3.2, 0.05, 0.02)).sum())


def busy_rows() -> Any:
    lines = table("bus_lines")
    return lines[lines["Passengers a day"] > lines["Passengers a day"].median()]


def fertilised(amount: int) -> Any:
    plots = table("wheat_plots")
    return plots[plots["Fertiliser (kg/ha)"] == amount]


def best_variety(amount: int) -> str:
    return str(fertilised(amount).groupby("Variety")["Yield (t/ha)"].mean().idxmax())


def wide_hydro_plants() -> Any:
    plants = table("power_plants")
    big = plants[plants["Capacity (MW)"] > plants["Capacity (MW)"].mean()]
    return big[big["Fuel"] == "Hydro"]


def studied(*, more: bool) -> Any:
    exams = table("exam_scores")
    hours = exams["Hours studied"]
    return exams.loc[hours > hours.median() if more else hours <= hours.median(), "Physics"]


def reduced_tea_income() -> float:
    tea = table("tea_sales_zh")
    price = tea["单价（元/斤）"].where(tea["评分"] >= 4.5, tea["单价（元/斤）"] * 0.9)
    return float((price * tea["销量（斤）"]).sum())


def grown() -> Any:
    frame = table("districts", header=None, skiprows=2)
    frame.columns = ["district", "before", "after", "households", "area"]
    return frame[frame["after"] > frame["before"]]


def sunshine() -> list[int]:
    return list(table("weather_station")["Sunshine (h)"])


def sunshine_by_rain() -> list[list[int]]:
    weather = table("weather_station").sort_values("Rainfall (mm)")
    return [list(half["Sunshine (h)"]) for half in (weather.head(6), weather.tail(6))]


def yes(truth: Any) -> str:
    return "Yes" if truth else "No"


PROGRAMS: dict[str, Callable[[], Any]] = {
    "Mathematical_Reasoning|shipped|tank": lambda: 240 / (16 - 4),
    "Mathematical_Reasoning|shipped|pens": lambda: (13.5 - 3 * 3.5) / 2,
    "Mathematical_Reasoning|shipped|rope": lambda: (36 - 36 / 3) / 2,
    "Table_Retrieval|shipped|planets-like-earth": lambda: (
        (table("planets").set_index("Planet")["Mean radius (km)"] - 6371.0).abs().drop("Earth").idxmin()
    ),
    "Table_Retrieval|shipped|league-winners": lambda: table("league_table").query("Won > Lost").shape[0],
    "Table_Retrieval|shipped|tea-fujian": lambda: names(table("tea_sales_zh").query("产地 == '福建'")["茶名"], "、"),
    "Table_Retrieval|shipped|elements-halogen": lambda: (
        table("elements").query("Family == 'halogen'").set_index("Element")["Atomic weight"].idxmax()
    ),
    "Table_Fact_Checking|shipped|plants-gas-solar": lambda: (
        table("power_plants")["Fuel"].eq("Gas").sum() > table("power_plants")["Fuel"].eq("Solar").sum()
    ),
    "Table_Fact_Checking|shipped|planets-rings": lambda: (
        table("planets").query("Rings == 'yes'")["Type"].eq("gas giant").all()
    ),
    "Table_Query|shipped|planets-cell": lambda: table("planets").iloc[2, 1],
    "Table_Query|shipped|grades-cell": lambda: table("class_grades_zh").iloc[3, 4],
    "Table_Query|shipped|buses-cell": lambda: table("bus_lines").iloc[4, 2],
    "Table_Query|shipped|plants-below": lambda: (
        table("power_plants")["Plant"].shift(-1)[table("power_plants")["Plant"].eq("Dunmere")].item()
    ),
    "Table_Query|shipped|districts-cell": lambda: table("districts", header=[0, 1]).iloc[2, -1],
    "Table_Selection|shipped|league-attack": lambda: names(
        table("league_table").query("`Goals for` > 33 and Lost < 6")["Team"]
    ),
    "Table_Selection|shipped|grades-both": lambda: names(
        table("class_grades_zh").query("数学 >= 90 and 英语 >= 90")["姓名"], "、"
    ),
    "Table_Selection|shipped|staff-ghent": lambda: names(
        table("employees").query("City == 'Ghent' and Rating >= 4")["Employee"]
    ),
    "Table_Selection|shipped|plants-old-big": lambda: names(
        table("power_plants").query("Commissioned < 1995 and `Capacity (MW)` > 300")["Plant"]
    ),
    "Table_General_Operations|shipped|rain-mean": lambda: round(table("weather_station")["Rainfall (mm)"].mean(), 2),
    "Table_General_Operations|shipped|orders-north": lambda: (
        table("store_orders").query("Region == 'North'")["Units"].sum()
    ),
    "Table_General_Operations|shipped|tea-green": lambda: (
        table("tea_sales_zh").query("类别 == '绿茶'")["单价（元/斤）"].mean()
    ),
    "Table_Domain-specific_Operations|shipped|kepler": lambda: round(
        table("planets").set_index("Planet")["Distance from the Sun (AU)"]["Jupiter"] ** 1.5, 1
    ),
    "Table_Domain-specific_Operations|shipped|gross-margin": lambda: (
        f"{100 * (1 - quarter('2022 Q4')['Cost of goods sold'] / quarter('2022 Q4')['Revenue']):.1f}%"
    ),
    "Table_Domain-specific_Operations|shipped|current-ratio": lambda: (
        quarter("2021 Q1")["Current assets"] / quarter("2021 Q1")["Current liabilities"]
    ),
    "Table_Domain-specific_Operations|shipped|capacity-factor": lambda: f"{capacity_factor('Aldmoor'):.1f}%",
    "Table_Outlier_Detection|shipped|couriers": lambda: names(
        ["Ada", "Ben", "Cem", "Dee", "Eli", "Flo", "Gus", "Hal"][place]
        for place in iqr_outliers(pd.Series([31, 29, 33, 30, 95, 32, 28, 34])).index
    ),
    "Table_Outlier_Detection|shipped|orders-units": lambda: names(
        table("store_orders").loc[iqr_outliers(table("store_orders")["Units"]).index, "Order"]
    ),
    "Table_Outlier_Detection|shipped|salaries": lambda: names(
        table("employees").loc[lambda staff: np.abs(stats.zscore(staff["Monthly salary"], ddof=1)) > 3, "Employee"]
    ),
    "Table_Correlation_Analysis|shipped|sun-frost": lambda: round(
        table("weather_station")["Sunshine (h)"].corr(table("weather_station")["Frost days"], "spearman"), 2
    ),
    "Table_Correlation_Analysis|shipped|hours-maths": lambda: round(
        table("exam_scores")["Hours studied"].corr(table("exam_scores")["Maths"]), 2
    ),
    "Table_Correlation_Analysis|shipped|passengers": lambda: most_correlated(
        table("bus_lines"), "Passengers a day", ["Length (km)", "Stops", "On time (%)"]
    ),
    "Table_Hypothesis_Testing|shipped|summer-sun": lambda: yes(
        stats.ttest_ind(sunshine()[3:9], [*sunshine()[:3], *sunshine()[9:]], equal_var=False).pvalue < 0.05
    ),
    "Table_Hypothesis_Testing|shipped|treatments": lambda: yes(
        stats.ttest_ind(fall("A"), fall("B"), equal_var=False).pvalue < 0.05
    ),
    "Table_Hypothesis_Testing|shipped|classes": lambda: yes(
        stats.ttest_ind(
            *(group["Literature"] for _, group in table("exam_scores").groupby("Class")), equal_var=False
        ).pvalue
        < 0.05
    ),
    "Table_Distribution_Testing|shipped|rainfall": lambda: yes(
        stats.shapiro(table("weather_station")["Rainfall (mm)"]).pvalue >= 0.05
    ),
    "Table_Distribution_Testing|shipped|salaries": lambda: yes(
        stats.shapiro(table("employees")["Monthly salary"]).pvalue >= 0.05
    ),
    "Table_Distribution_Testing|shipped|blood-pressure": lambda: yes(
        stats.shapiro(table("clinic_visits")["Systolic before (mmHg)"]).pvalue >= 0.05
    ),
    "Multi-step_Retrieval|shipped|outer-planets": lambda: (
        table("planets")
        .query("`Distance from the Sun (AU)` > `Distance from the Sun (AU)`.mean()")
        .set_index("Planet")["Mean radius (km)"]
        .idxmin()
    ),
    "Multi-step_Retrieval|shipped|hydro": lambda: wide_hydro_plants().set_index("Plant")["Output 2022 (GWh)"].idxmin(),
    "Multi-step_Retrieval|shipped|late-lines": lambda: busy_rows().set_index("Line")["On time (%)"].idxmin(),
    "Multi-step_Fact_Checking|shipped|varieties": lambda: best_variety(120) == best_variety(0),
    "Multi-step_Fact_Checking|shipped|planets": lambda: (
        table("planets").groupby("Rings")["Mean radius (km)"].mean()["yes"]
        > 10 * table("planets").groupby("Rings")["Mean radius (km)"].mean()["no"]
    ),
    "Multi-step_Operations|shipped|undiscounted": lambda: (
        f"{100 * undiscounted_by_region().max() / undiscounted_by_region().sum():.1f}%"
    ),
    "Multi-step_Operations|shipped|density": lambda: round(grown()["after"].sum() / grown()["area"].sum(), 1),
    "Multi-step_Correlation_Analysis|shipped|frost": lambda: round(
        np.corrcoef(
            *table("weather_station").query("`Frost days` > 0")[["Mean temperature (°C)", "Frost days"]].T.to_numpy()
        )[0, 1],
        2,
    ),
    "Multi-step_Correlation_Analysis|shipped|age": lambda: max("AB", key=lambda one: abs(age_and_fall(one))),
    "Multi-step_Correlation_Analysis|shipped|fertiliser": lambda: round(
        fertilised(120)["Rain (mm)"].corr(fertilised(120)["Yield (t/ha)"]), 2
    ),
    "Multi-step_Hypothesis_Testing|shipped|wet-months": lambda: yes(
        stats.ttest_ind(*sunshine_by_rain(), equal_var=False).pvalue < 0.05
    ),
    "Multi-step_Hypothesis_Testing|shipped|wind-hydro": lambda: yes(
        stats.ttest_ind(per_megawatt("Wind"), per_megawatt("Hydro"), equal_var=False).pvalue < 0.05
    ),
    "Multi-step_Hypothesis_Testing|shipped|study-physics": lambda: yes(
        stats.mannwhitneyu(studied(more=True), studied(more=False)).pvalue < 0.05
    ),
    "Multi-step_Conditional_Calculation|shipped|bonus": lambda: (
        table("league_table").eval("2 * Won + Drawn").sum() + 3 * (table("league_table")["Goals for"] > 30).sum()
    ),
    "Multi-step_Conditional_Calculation|shipped|payroll": lambda: round(payroll_rise(), 2),
    "Multi-step_Conditional_Calculation|shipped|tea-discount": lambda: round(reduced_tea_income(), 2),
}

# Answers that no program works out: texts, code, marks of language.
IN_WORDS = {
    *(f"Understanding|shipped|{slug}" for slug in ("map", "kettle", "height")),
    *(f"Instruction_Following|shipped|{slug}" for slug in ("letters", "harbour", "lantern", "colours", "moon")),
    *(f"Hallucination_Evaluation|shipped|{slug}" for slug in ("moon-capital", "museum")),
    *(f"Robustness_Evaluation|shipped|{slug}" for slug in ("typos", "weight")),
    *(f"Code_Generation|shipped|{slug}" for slug in ("second-largest", "porto")),
    *(f"Table_Summary|shipped|{slug}" for slug in ("planets", "weather")),
    *(f"Table_Column_Naming|shipped|{slug}" for slug in ("greenhouse", "symbols")),
    *(f"Table_Title_Naming|shipped|{slug}" for slug in ("weather", "plants", "grades")),
    *(f"Table_Plausibility_Verification|shipped|{slug}" for slug in ("ages", "matches")),
}


def test_every_shipped_answer_has_a_program_or_is_in_words() -> None:
    assert set(PROGRAMS) | IN_WORDS == set(RECORDS)
    assert not set(PROGRAMS) & IN_WORDS


@pytest.mark.parametrize("record", sorted(PROGRAMS))
def test_a_program_of_its_own_finds_the_shipped_answer(record: str) -> None:
    computed, shipped = PROGRAMS[record](), RECORDS[record]
    written = str(computed) if isinstance(computed, (str, bool, np.bool_)) else repr(float(computed))
    same_number = numeric_match(written, shipped["answer"]) == 1.0
    assert written == shipped["answer"] or same_number
    if shipped["number_answer"] != "":
        assert numeric_match(written.removesuffix("%"), shipped["number_answer"]) == 1.0


@pytest.mark.parametrize("record", sorted(PROGRAMS))
def test_an_answer_that_is_a_number_says_so(record: str) -> None:
    is_number = RECORDS[record]["number_answer"] != ""
    computed = PROGRAMS[record]()
    assert is_number == (not isinstance(computed, (str, bool, np.bool_)) or str(computed).endswith("%"))


def test_every_subtask_has_two_items_and_some_are_chinese() -> None:
    counts = Counter(record.split("|")[0] for record in RECORDS)
    assert set(counts) == {subtask.file for subtask in SUBTASKS}
    assert min(counts.values()) >= 2
    assert sum(bool(HAN.search(record["question"])) for record in RECORDS.values()) >= 5


def test_the_shipped_tables_have_five_to_sixty_rows() -> None:
    tables = sorted((SHIPPED / "csv").glob("*.csv"))
    assert len(tables) >= 8
    for path in tables:
        assert 5 <= len(pd.read_csv(path)) <= 60
    used = {name for record in RECORDS.values() for name in record["file_path"] if name}
    assert used == {f"csv/{path.name}" for path in tables}
