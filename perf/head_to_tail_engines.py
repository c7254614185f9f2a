"""The heaviest steps of IMDb's build in duckdb and in polars, for the choice between them.

    python perf/head_to_tail_dumps.py imdb DIR --scale 2000000
    uv run --with duckdb --with polars python perf/head_to_tail_engines.py DIR duckdb
    uv run --with duckdb --with polars python perf/head_to_tail_engines.py DIR polars

Prints wall time, processor time and peak memory of: ratings and titles read and joined; people read and their
popularity summed over the titles that they are known for; the parts of 6,000 titles picked out of the
principals.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

PICKED = ("007", "107", "207")


def duckdb_steps(folder: Path) -> list[int]:
    import duckdb

    base = duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False})
    base.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")

    def table(name: str, *columns: str) -> str:
        types = ", ".join(f"'{column}': 'VARCHAR'" for column in columns)
        form = "delim = '\t', quote = '', escape = '', nullstr = '\\N', header = true, auto_detect = false"
        return f"read_csv('{folder / name}.tsv.gz', {form}, columns = {{{types}}})"

    basics = table("title.basics", "id", "kind", "name", "o", "a", "year", "e", "minutes", "g")
    base.execute(f"""CREATE TABLE title AS SELECT id, kind, name, year::INTEGER AS year, minutes,
        coalesce(votes::BIGINT, 1) AS votes
        FROM {basics} AS basics LEFT JOIN {table("title.ratings", "id", "r", "votes")} AS ratings USING (id)""")
    people = table("name.basics", "id", "name", "b", "d", "professions", "works")
    base.execute(f"CREATE TABLE person AS FROM {people}")
    base.execute("""CREATE TABLE fame AS SELECT person, sum(votes)::BIGINT AS votes
        FROM (SELECT id AS person, unnest(string_split(works, ',')) AS id FROM person)
        JOIN (FROM title WHERE year <= 2020) USING (id) GROUP BY person""")
    principals = table("title.principals", "id", "o", "person", "category", "j", "characters")
    base.execute(f"CREATE TABLE picked AS SELECT id FROM title WHERE id[-3:] IN {PICKED}")
    base.execute(f"""CREATE TABLE part AS SELECT id, person, characters
        FROM {principals} SEMI JOIN picked USING (id)
        WHERE category IN ('actor', 'actress') AND characters IS NOT NULL""")
    counts = "SELECT (SELECT count(*) FROM title), (SELECT sum(votes) FROM fame), (SELECT count(*) FROM part)"
    return [int(number) for number in base.execute(counts).fetchall()[0]]


def polars_steps(folder: Path) -> list[int]:
    import polars as pl

    def table(name: str) -> pl.LazyFrame:
        path = folder / f"{name}.tsv.gz"
        return pl.scan_csv(path, separator="\t", quote_char=None, null_values="\\N", infer_schema=False)

    ratings = table("title.ratings").select("tconst", pl.col("numVotes").cast(pl.Int64).alias("votes"))
    title = (
        table("title.basics")
        .select("tconst", "titleType", "primaryTitle", pl.col("startYear").cast(pl.Int32), "runtimeMinutes")
        .join(ratings, on="tconst", how="left")
        .with_columns(pl.col("votes").fill_null(1))
        .collect(engine="streaming")
    )
    person = table("name.basics").collect(engine="streaming")
    fame = (
        person.lazy()
        .select("nconst", pl.col("knownForTitles").str.split(",").alias("tconst"))
        .explode("tconst")
        .join(title.lazy().filter(pl.col("startYear") <= 2020).select("tconst", "votes"), on="tconst")
        .group_by("nconst")
        .agg(pl.col("votes").sum())
        .collect(engine="streaming")
    )
    picked = title.lazy().filter(pl.col("tconst").str.tail(3).is_in(PICKED)).select("tconst")
    part = (
        table("title.principals")
        .filter(pl.col("category").is_in(["actor", "actress"]) & pl.col("characters").is_not_null())
        .join(picked, on="tconst", how="semi")
        .select("tconst", "nconst", "characters")
        .collect(engine="streaming")
    )
    return [title.height, int(fame["votes"].sum()), part.height]


if __name__ == "__main__":
    began = time.perf_counter()
    counts = {"duckdb": duckdb_steps, "polars": polars_steps}[sys.argv[2]](Path(sys.argv[1]))
    wall = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{sys.argv[2]}: {wall:.1f} s, processor {time.process_time():.1f} s, peak {peak:.0f} MiB, {counts}")
