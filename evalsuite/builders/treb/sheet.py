"""Read the tables in a user's folder, check whether they suit questions, and find what their columns mean.

Tables are delimited text in any usual encoding, sheets of workbooks, and tables of SQLite files. Cells become text.
Numbers are rewritten so that pandas and people read the same value: `1,200` becomes `1200`. In a file with decimal
commas, `1.200,5` becomes `1200.5`. The conditions for a table are those of arXiv 2506.18421.

A meaningless question, such as the sum of a column of seasons, is worse than no question. Therefore, a column is used
only if its meaning is clear from its name and its cells. Questions about a sum need a column whose name refers to
something countable. For a mean, neither the column's name nor its cells may suggest running numbers, years or codes.
"""

import csv
import io
import itertools
import re
import sqlite3
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from evalsuite.benchmarks.treb.tables import SourceTable
from evalsuite.builders.building import decode_text, find_delimiter
from evalsuite.core.errors import DatasetError
from evalsuite.samples.files import open_database, read_rows, read_table_sql

LONGEST, EMPTIEST = 30_000, 0.7
_TOTAL = re.compile(
    r"(grand |sub-?)?totals?( .{0,20})?|sums?|averages?|means?|overall|all|turnout|majority|.{0,30} (hold|gain)|net|"
    r"[合总小]计|平均值?|均值|总和|总数|全部",
    re.IGNORECASE,
)
# The missing values of pandas.read_csv (its documentation, parameter na_values).
MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)


@dataclass(frozen=True)
class Sheet:
    """A table that suits questions; its columns can be read by kind, and a missing cell is None."""

    name: str
    table: SourceTable

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        return self.table.header[0]

    @cached_property
    def columns(self) -> dict[str, list[str | None]]:
        """The cells of each column, by the column's name."""
        return {
            name: [None if row[place] in MISSING else row[place] for row in self.table.rows]
            for place, name in enumerate(self.column_names)
        }

    @cached_property
    def numeric_columns(self) -> dict[str, list[float | None]]:
        """The columns that contain at least two numbers, and otherwise only missing cells."""
        return {
            name: [None if cell is None else float(cell) for cell in cells]
            for name, cells in self.columns.items()
            if sum(cell is not None for cell in cells) > 1 and all(cell is None or is_number(cell) for cell in cells)
        }

    @cached_property
    def comparable_columns(self) -> dict[str, list[float | None]]:
        """The numeric columns whose values can be compared, unlike codes, telephone numbers and row numbers."""
        return {name: cells for name, cells in self.numeric_columns.items() if not self._is_code_column(name, cells)}

    @cached_property
    def arithmetic_columns(self) -> dict[str, list[float | None]]:
        """The numeric columns that allow arithmetic, unlike years, ranks, dates, answers and classes."""
        return {
            name: cells for name, cells in self.comparable_columns.items() if not self._is_ordinal_column(name, cells)
        }

    def _is_code_column(self, name: str, cells: list[float | None]) -> bool:
        if is_meaningless_name(name) or _suggests_codes(name) or _are_codes(self.columns[name]):
            return True
        present = [cell for cell in cells if cell is not None]
        # A column of flags has at most two values, or mainly 0 and 1, with fractions if a flag holds in part.
        mostly_flags = 4 * sum(cell in (0, 1) for cell in present) >= 3 * len(present)
        if (mostly_flags and 0 <= min(present) <= max(present) <= 1) or len(set(present)) <= MOST_FLAGS:
            return not _suggests_amounts(name)
        counts_rows = present in ([*range(len(present))], [*range(1, len(present) + 1)])
        whole = all(map(float.is_integer, present))
        # In the first column, whole numbers that strictly increase are row numbers.
        increase = all(below > above for above, below in itertools.pairwise(present))
        numbered = counts_rows or (name == self.column_names[0] and whole and increase)
        # Unless the column's name states a quantity, recurring whole numbers may be codes, for example of schools.
        recurring = 4 * len(set(present)) <= 3 * len(present) and whole
        unnamed = recurring and not _suggests_quantities(name)
        return (numbered or unnamed) and not _suggests_order(name) and not _are_years(present)

    def _is_ordinal_column(self, name: str, cells: list[float | None]) -> bool:
        present = [cell for cell in cells if cell is not None]
        if _suggests_order(name) or _are_years(present):
            return True
        if len(present) >= FEWEST_IN_ORDER and (_are_running_numbers(present) or _are_running_steps(present)):
            return True
        return _are_levels(present) and not _suggests_amounts(name)

    @cached_property
    def summable_columns(self) -> list[str]:
        """The columns whose sum is meaningful: sales, but not unit prices, marks or elapsed days."""
        columns = self.arithmetic_columns.items()
        return [name for name, cells in columns if _suggests_amounts(name) and not _is_sum_meaningless(cells)]

    @cached_property
    def naming_columns(self) -> dict[str, list[str | None]]:
        """The text columns whose cells are names; questions can refer to rows or groups by these names."""
        return {
            name: cells
            for name, cells in self.columns.items()
            if name not in self.numeric_columns and _are_names(cells) and not is_meaningless_name(name)
        }

    @cached_property
    def key_column(self) -> str | None:
        """The column that identifies rows: the first column of names without missing or repeated cells, if any."""
        for name, cells in self.naming_columns.items():
            if None not in cells and len(set(cells)) == len(cells):
                return name
        return None

    @cached_property
    def grouping_columns(self) -> dict[str, list[str]]:
        """The columns of names that form groups (each value at least twice on average), with the distinct values."""
        groups = {}
        for name, cells in self.naming_columns.items():
            values = [cell for cell in cells if cell is not None]
            distinct = list(dict.fromkeys(values))
            if 2 <= len(distinct) <= len(values) / 2:
                groups[name] = distinct
        return groups


def find_defect(table: SourceTable) -> str | None:
    """Explain why a table does not suit questions; None if it does."""
    return next((reason for reason in _list_defects(table) if reason), None)


def _list_defects(table: SourceTable) -> Iterator[str | None]:
    """Yield, for each condition, the reason why the table does not meet it, or None if it does."""
    names, cells, characters = table.header[0], [cell for row in table.rows for cell in row], len(table.format_csv())
    yield f"it has {characters} characters of content, more than {LONGEST}" if characters > LONGEST else None
    yield None if cells else "it has no rows"
    empty = sum(cell in MISSING for cell in cells)
    too_empty = empty > EMPTIEST * len(cells)
    yield f"{empty} of its {len(cells)} cells are empty, more than {EMPTIEST:.0%}" if too_empty else None
    named = all(names) and len(set(names)) == len(names) and not any("\n" in name for name in names)
    yield None if named else "its first row does not name every column, each differently and on one line"
    yield "it repeats its header row" if any(list(row) == list(names) for row in table.rows) else None
    # The first data row is a second header if it has a word in a column that is otherwise numeric.
    second_header = any(
        not (first in MISSING or is_number(first))
        and sum(map(is_number, below)) > 1
        and all(cell in MISSING or is_number(cell) for cell in below)
        for first, *below in zip(*table.rows, strict=True)
    )
    yield "it has more than one header row" if second_header else None
    numeric = Sheet("", table).numeric_columns
    yield None if numeric else "it has no column of numbers"
    looks_like_data = all(is_number(name) and not YEAR.fullmatch(name) for name in numeric)
    yield "its first row looks like data" if looks_like_data else None
    columns, size = list(numeric.values()), len(table.rows)
    squares = [columns[first : first + size] for first in range(len(columns) - size + 1)] if size > 2 else []
    symmetric = any(list(map(list, zip(*square, strict=True))) == square for square in squares)
    yield "it is a table of correlations or distances" if symmetric else None
    has_total = any(_TOTAL.fullmatch(cell.strip(" :\uff1a")) for cell in cells)
    yield "it has a row of totals or averages" if has_total else None
    yield None if Sheet("", table).arithmetic_columns else "its columns of numbers are only years, ranks or codes"


def is_number(cell: str) -> bool:
    """Tell whether a cell is a plain decimal number, so that pandas and people read the same value."""
    return bool(NUMBER.fullmatch(cell))


LONGEST_VALUE = 60  # Maximum characters of a cell by which a question may refer to a row or a group.
FEWEST_IN_ORDER = 5
MOST_FLAGS, MOST_LEVELS = 2, 10
SHORTEST_CODE = 7  # Distinct whole numbers of equal length are codes if they have at least this many digits.
LONGEST_NUMBER = 15  # Maximum decimal digits that a float preserves.
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
YEAR = re.compile(r"(1[5-9]|20)\d\d")
# Numbers with signs, units or several parts: `+2 Laps`, `12%`, `0-1`, `1:30:01.2`, `1,234`, `2011-04-01`, `5th`.
_NUMBER_LIKE = re.compile(r"\W*\d[\d\W]*([a-zA-Z]{1,4}\.?)?[\d\W]*")
# Main nouns of English column names; columns with such a name contain codes.
_CODES = re.compile(
    r"no|nr|num|number|numbers|id|ids|identifier|code|codes|zip|zipcode|postcode|phone|telephone|tel|fax|mobile|isbn|"
    r"issn|ean|upc|sku|serial|account|acct|uid|uuid|guid|ref|reference|jersey|shirt|squad|kit|channel|channels|ch|freq|"
    r"frequency|route|line|bus|train|flight|gate|room|floor|lane|bib|car|plate|license|licence|passport|ssn|vin|"
    r"catalog|catalogue|district|precinct|ward|block|lot|version|index|key|hash|invoice|ticket|row|record|case|subject|"
    r"participant|patient|respondent|household|plot|site|station|batch|run|replicate|rep|trial|sample|group|cluster|"
    r"class|type|category|treatment|obs|observation|sex|gender|status|flag|male|female|married|dummy|zone|region|"
    r"country|state|fips|latitude|longitude|lat|lon|lng|long|name|names|note|notes|"
    # The following words name units of experiments or surveys, which are often numbered, or alleles (APOE.a1).
    r"individual|person|child|man|woman|student|teacher|doctor|judge|rater|worker|player|driver|interviewer|team|"
    r"family|school|hospital|clinic|center|centre|farm|village|county|firm|company|ship|panel|herd|litter|cage|tank|"
    r"tray|pot|animal|dog|cat|rat|mouse|cow|pig|tree|pair|twin|strata|stratum|digits|race|cell|a[12]|unit|seed|gen|"
    r"inst|institution|coordinates|rownames|unnamed|color|colour|city|town|tract|puma|msa|smsa|course|numeric|trt|hid|"
    r"pid|sid"
)
_ORDERS = re.compile(
    r"year|years|yr|season|seasons|rank|ranks|ranking|rankings|pos|position|place|standing|grid|pick|draft|round|"
    r"rounds|week|weekday|day|month|quarter|date|dates|time|times|hour|minute|start|end|begin|began|ended|since|until|"
    r"born|died|birth|death|founded|established|opened|closed|built|completed|launched|released|retired|elected|"
    r"isolated|discovered|observed|introduced|predicted|tenure|term|episode|ep|series|chapter|volume|vol|issue|edition|"
    r"stage|leg|heat|tier|level|division|matchday|game|match|mon|mo|mth|qtr|dow|wday|doy|hr|occasion|session|"
    r"generation|page|startpage|endpage|decade|century|period|era|order|step|phase|first|last|current"
)
_CHINESE_CODES = re.compile(
    r"号$|号码|[代编条验]码|码$|电话|手机|邮[编政]|车次|航班|班级|楼层|频道|批次|版本|经度|纬度|类型|类别|性别|身份证|"
    r"ID$"
)
_CHINESE_ORDERS = re.compile(r"[年季月日期轮届](份|度|数|次)?$|排[名位序]|名次|位次|时间|时刻|等级|级别|序数|第|出生")
# Words for values that cannot be added: unit prices, rates, marks, ages, sizes.
_LEVELS = re.compile(
    r"\b(rates?|ratings?|ratios?|prices?|scores?|shares?|percent(age)?|pct|averages?|avg|means?|median|ages?|heights?|"
    r"widths?|temp(erature)?s?|density|index|per|[a-z]?pg|mpg|grades?|marks?|gpa|humidity|speed|velocity|pressure|"
    r"margin|change|growth|depth|elevation|altitude|max(imum)?|min(imum)?|highest|lowest|std|deviation|variance|error|"
    r"efficiency|level|balance|difference|diff|record|cumulative|running|capita|worst|best|se|sd|std|est)\b|%|/|"
    r"[价率比龄均高温速分]$|单价|评分|比例|百分|温度|湿度|年龄|平均|密度|指数|成绩|身高|增[长速幅]|海拔|累计|"
    r"最[高低大小]",
    re.IGNORECASE,
)
# Words for values that can be added in any table.
_AMOUNTS = re.compile(
    r"\b(votes|points|pts|goals|caps|assists|wins?|won|loss(es)?|lost|draws?|drawn|played|apps|appearances|starts|"
    r"tries|runs|wickets|sales|revenues?|profits?|costs?|expenses|expenditures?|spend(ing)?|budget|amount|quantity|qty|"
    r"units?|sold|orders|gross|earnings|turnover|exports?|imports?|production|output|consumption|emissions|harvest|"
    r"catch|population|people|inhabitants|residents|persons|men|women|children|students|pupils|teachers|employees|"
    r"staff|workers|visitors|passengers|spectators|attendance|audience|viewers|members|customers|patients|cases|deaths|"
    r"births|casualties|killed|wounded|injured|injuries|accidents|arrests|murders|seats|beds|rooms|homes|houses|"
    r"households|vehicles|cars|ships|aircraft|area|acres|hectares|capacity|episodes|books|titles|copies|downloads|"
    r"visits|clicks|gold|silver|bronze|medals|trophies|laps|matches|games|gp|gs|days|hours|minutes|seconds|miles|km|"
    r"tonnes|tons|kg|rainfall|precipitation|steps|calories|tax|taxes|salary|salaries|payments?|donations|stock|"
    r"inventory|items|count|counts|freq|frequency|total|tests|touchdowns|yards|rebounds|steals|blocks|points for|"
    r"points against|goals for|goals against)\b|\b(number|no\.?|count|#) of\b|[量额]$|[量额数][(\uff08]|人数|人口|金额|"
    r"数量|面积|收入|支出|成本|利润|费用|票数|票房|进球|得分|场次|场数|次数|件数|台数|套数|辆数|销量|产量|预算|金牌|"
    r"银牌|铜牌|奖牌|库存|订单|客流|降水",
    re.IGNORECASE,
)

# Words for further values that can be compared, but cannot be added in every table.
_QUANTITIES = re.compile(
    r"\b(sizes?|lengths?|weights?|distances?|dist|mass|volume|doses?|conc(entration)?|incomes?|wages?|pay|fees?|bills?|"
    r"tips?|educ(ation)?|schooling|experience|siblings|bids?|errors|attempts|clutch|iq|sat|gre|act|hp|horsepower|"
    r"cyl(inders)?|displacement|fuel|mileage|calories|fat|protein|sugars?|fib(er|re)|sodium|carbo(hydrate)?s?|vitamins|"
    r"pulse|pressure|bp|bmi|cholesterol|glucose|duration|delay|visits|cites|citations|breaks|eggs|offspring|fruits|"
    r"leaves|plants|insects|birds|fish|strikes|strokes|stars|tickets|sum|values?|amounts?|numbers?|width|depth)\b|"
    r"[数长宽重深时]$",
    re.IGNORECASE,
)


def _suggests_codes(name: str) -> bool:
    """Tell whether a column's name suggests numbers without a meaningful order, such as codes."""
    glued = re.search(r"#(?! ?of )|[a-z]{3}(no|nr|num|id|idx)$|(?i:(code|type|idno)$|(^|[\W_])id([\W_]|$))", name)
    return bool(glued or _CODES.fullmatch(_find_head_noun(name)) or _CHINESE_CODES.search(name.strip()))


def _suggests_order(name: str) -> bool:
    """Tell whether a column's name suggests years, ranks or dates, which can be compared but not added."""
    return bool(_ORDERS.fullmatch(_find_head_noun(name))) or bool(_CHINESE_ORDERS.search(_remove_bracketed_parts(name)))


def _suggests_amounts(name: str) -> bool:
    """Tell whether a column's name suggests amounts that can be added, such as sales or goals."""
    words = re.sub(r"[_\s]+", " ", name)
    return bool(_AMOUNTS.search(words)) and not _LEVELS.search(words)


def _suggests_quantities(name: str) -> bool:
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", re.sub(r"[._\s]+", " ", name))
    return bool(_AMOUNTS.search(words) or _LEVELS.search(words) or _QUANTITIES.search(words))


def is_meaningless_name(name: str) -> bool:
    """Tell whether a column's name says nothing about its content: `x`, `Var1`, `Notes`, or a number except years."""
    if re.fullmatch(r"(comment|remark|note)s?|备注|说明", name.strip(), re.IGNORECASE):
        return True
    bare = re.sub(r"\W", "", name)
    bare = re.sub(r"(?i:^(var(iable)?|col(umn)?|field|feature|attr(ibute)?)(?=[\d_]+$))", "", bare)
    return len(re.sub(r"[\d_]", "", bare)) < 2 and not _HAN.search(bare) and not YEAR.fullmatch(name.strip())


_HAN = re.compile("[\u4e00-\u9fff]")


def _remove_bracketed_parts(name: str) -> str:
    return re.sub(r"[(\[\uff08].*?[)\]\uff09]", " ", name).strip()


def _find_head_noun(name: str) -> str:
    """Find the main noun of a column's name: `line` in `Bus line (km)`, `episodes` in `Number of episodes`."""
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", _remove_bracketed_parts(name))
    words = re.sub(r"^(number |no |count )?of (the )?", "", re.sub(r"[_\W]+", " ", words).strip().lower())
    phrase = re.split(r" (?:of|in|per|by|at|on|for|from|to)(?: |$)", words)[0]
    return next((word for word in reversed(phrase.split()) if not word.isdigit()), "")


def _are_years(numbers: Sequence[float]) -> bool:
    return all(number.is_integer() and 1500 <= number < 2100 for number in numbers)


def _are_running_numbers(numbers: Sequence[float]) -> bool:
    """Tell whether numbers are whole and distinct, and almost fill their range, such as 1 to n in any order."""
    are_whole_and_distinct = all(map(float.is_integer, numbers)) and len(set(numbers)) == len(numbers)
    return are_whole_and_distinct and max(numbers) - min(numbers) + 1 <= 1.25 * len(numbers)


def _are_running_steps(numbers: Sequence[float]) -> bool:
    """Tell whether most numbers exceed the previous one by the same step, as months or an experiment's settings do."""
    steps = Counter(round(above - below, 9) for below, above in itertools.pairwise(numbers))
    (step, count), *_ = steps.most_common(1)
    return step > 0 and 4 * count >= 3 * steps.total()


def _is_sum_meaningless(cells: Sequence[float | None]) -> bool:
    """Tell whether adding cells is meaningless: the values never decrease (day 1, 2, 3), or are large and recur."""
    present = [cell for cell in cells if cell is not None]
    never_fall = len(present) >= FEWEST_IN_ORDER and sorted(present) == present
    return never_fall or (min(present) >= 1000 and 2 * len(set(present)) <= len(present))


def _are_codes(cells: Sequence[str | None]) -> bool:
    """Tell whether cells look like codes: leading zeros, too many digits, equal lengths, or equal first digits."""
    present = [cell for cell in cells if cell is not None]
    if any(re.fullmatch(r"0\d+", cell) for cell in present):
        return True
    same = {len(cell) for cell in present} if all(map(str.isdecimal, present)) else set()
    if max(same, default=0) > LONGEST_NUMBER:  # Check this first, because Python converts at most 4300 digits.
        return True
    numbers = list(map(int, present)) if same else [0]
    # Large numbers that are almost equal are codes with a common prefix: 840001, 840007.
    if min(numbers) >= 10_000 and 1000 * (max(numbers) - min(numbers)) < min(numbers):
        return True
    return len(same) == 1 and min(same) >= SHORTEST_CODE and len(set(present)) == len(present)


def _are_levels(numbers: Sequence[float]) -> bool:
    """Tell whether a column repeats a few numbers, such as classes or doses.

    Either at most ten whole numbers occur at least three times on average, or all numbers occur equally often (a
    designed experiment).
    """
    counts = Counter(numbers)
    few = len(counts) <= MOST_LEVELS and counts.total() >= 3 * len(counts)
    designed = len(set(counts.values())) == 1 and counts.total() > len(counts)
    return designed or (few and all(map(float.is_integer, counts)))


def _are_names(cells: Sequence[str | None]) -> bool:
    """Tell whether the cells are names: short words without quotation marks, not numbers or truth values.

    Cells that differ only in case or blanks are rejected, because readers disagree whether they are equal.
    """
    present = [cell for cell in cells if cell is not None]
    folded = {" ".join(cell.lower().split()) for cell in present}
    if any('"' in cell for cell in present) or len(set(present)) > len(folded) or folded <= {"true", "false"}:
        return False
    odd = sum(bool(_NUMBER_LIKE.fullmatch(cell)) for cell in present)
    return bool(present) and max(map(len, present)) <= LONGEST_VALUE and 4 * odd < len(present)


TEXTS, WORKBOOKS, DATABASES = (".csv", ".tsv", ".tab"), (".xlsx", ".xlsm"), (".db", ".sqlite", ".sqlite3")
MOST_BYTES = 4 * LONGEST  # Maximum bytes of a text file, because a character has at most four bytes.
MOST_UNPACKED = 32 << 20  # Maximum unpacked bytes of a workbook.
MOST_CELLS = 1 << 20  # Maximum cells of a table; the limit of characters does not count empty cells.
TOO_LONG = f"it has more than {LONGEST} characters of content"


def list_table_files(folder: Path) -> list[Path]:
    """List a folder's files of the types that hold tables, sorted by name.

    Raises:
        DatasetError: the folder does not exist, or contains no file that may hold tables.
    """
    kinds = (*TEXTS, *WORKBOOKS, *DATABASES)
    if folder.is_dir() and (files := sorted(path for path in folder.iterdir() if path.suffix.lower() in kinds)):
        return files
    problem = "no table" if folder.is_dir() else "a file" if folder.exists() else "no such folder"
    raise DatasetError(folder, "", problem, f"a folder of tables as {', '.join(f'*{kind}' for kind in kinds)}")


def read_sheets(path: Path) -> Iterator[tuple[str, Sheet | str]]:
    """Yield the name and the sheet of each usable table in a file; for an unusable table, its source and the reason."""
    kind = path.suffix.lower()
    read = _read_workbook if kind in WORKBOOKS else _read_database if kind in DATABASES else _read_text_file
    try:
        if not path.is_file():
            raise ValueError("it is not a regular file")
        for part, rows, delimiter in read(path):
            name, source = path.stem, path.name
            if part:
                shown = re.sub(r"[^\w .()-]+", "_", part)[:60]
                name, source = f"{name}_{shown}", f"{source}, {shown}"
            found = make_sheet(name, rows, delimiter) if not isinstance(rows, str) else rows
            yield (source if isinstance(found, str) else name), found
    except (OSError, ValueError, csv.Error, sqlite3.Error, BadZipFile) as error:
        yield path.name, getattr(error, "strerror", None) or str(error)


# The name of a table, its rows (or the reason why they cannot be read), and the file's delimiter.
TablePart = tuple[str, "Sequence[Sequence[str]] | str", str]


def make_sheet(name: str, rows: Sequence[Sequence[str]], delimiter: str) -> Sheet | str:
    """Make a table from rows; the first row is the header; return the reason if the table is unsuitable."""
    cells = [[cell.strip() for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    columns = [[*column] for column in itertools.zip_longest(*cells, fillvalue="") if any(column)]
    columns = _normalise_numbers(columns, decimal_commas=delimiter != ",")
    lines = list(zip(*columns, strict=True))
    if not lines:
        return "it has no rows"
    table = SourceTable((lines[0],), tuple(lines[1:]))
    return find_defect(table) or Sheet(name, table)


_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}([.\u00a0\u202f]\d{3})+|\d+)(,\d+)?")


def _normalise_numbers(columns: list[list[str]], *, decimal_commas: bool) -> list[list[str]]:
    """Remove thousands separators from columns of numbers, and replace decimal commas by points."""

    def has_only_numbers(column: list[str], *, decimal_comma: bool) -> bool:
        present = [cell for cell in column[1:] if cell not in MISSING]
        read = _COMMA_NUMBER.fullmatch if decimal_comma else lambda cell: is_number(cell) or _THOUSANDS.fullmatch(cell)
        return bool(present) and all(map(read, present))

    # If any column is numeric only when commas are read as decimal points, read the whole file in this way.
    comma = decimal_commas and any(
        has_only_numbers(column, decimal_comma=True) and not has_only_numbers(column, decimal_comma=False)
        for column in columns
    )
    removed, point = (r"[.\u00a0\u202f](?=\d)", ",") if comma else (",", ".")

    def normalise_cell(cell: str) -> str:
        return cell if cell in MISSING else re.sub(removed, "", cell).replace(point, ".")

    return [
        [column[0], *map(normalise_cell, column[1:])] if has_only_numbers(column, decimal_comma=comma) else column
        for column in columns
    ]


def _read_text_file(path: Path) -> Iterator[TablePart]:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(TOO_LONG)
    text = decode_text(path.read_bytes())
    if mark := re.match(r"sep=(.)\r?\n", text):  # A line that tells Excel the delimiter.
        text = text[mark.end() :]
    delimiter = mark[1] if mark else find_delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        yield "", list(reader), delimiter
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error


def _read_workbook(path: Path) -> Iterator[TablePart]:
    with ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > MOST_UNPACKED:
            raise ValueError(f"its parts have more than {MOST_UNPACKED >> 20} MiB")
    try:
        from openpyxl import load_workbook  # type: ignore[import-untyped]  # it ships no types
    except ImportError as error:
        raise ValueError("workbooks need openpyxl: pip install 'evalsuite[sandbox]'") from error
    try:
        with (
            warnings.catch_warnings(action="ignore"),  # openpyxl warns of styles and validations that are not read.
            closing(load_workbook(path, read_only=True, data_only=True)) as book,
        ):
            for sheet in book.worksheets:
                title = sheet.title if len(book.worksheets) > 1 else ""
                yield title, _convert_rows_to_text(sheet.iter_rows(values_only=True)), ","
    # A damaged workbook can raise any exception.
    except Exception as error:
        raise ValueError(f"it is not a readable workbook: {str(error) or type(error).__name__}") from error


def _read_database(path: Path) -> Iterator[TablePart]:
    with open_database(path) as database:
        for name in read_table_sql(database):
            try:
                rows = _convert_rows_to_text(read_rows(database, name))
            except sqlite3.Error as error:
                rows = str(error)
            yield name, rows, ","


def _convert_rows_to_text(rows: Iterable[Sequence[Any]]) -> list[list[str]] | str:
    """Return the rows that are not empty, as texts, or the reason why the table cannot be used."""
    collected, length, cells = [], 0, 0
    for row in rows:
        if any(isinstance(cell, bytes) for cell in row):
            return "it has binary cells"
        texts = [_format_cell(cell) for cell in row]
        length, cells = length + sum(map(len, texts)), cells + len(texts)
        if length > LONGEST or cells > MOST_CELLS:
            return TOO_LONG
        if any(texts):
            collected.append(texts)
    return collected


def _format_cell(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime):
        return str(cell.date() if cell.time() == time() else cell)
    return "" if cell is None else str(cell)
