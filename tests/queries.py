"""Makes runs of a fleet, and asks DuckDB the questions of examples/queries; see tests/queries."""

import json
import pathlib
import shutil
import sys

TABLES = ["runs", "steps", "intervals", "waits", "buckets", "counters", "findings", "parts"]
# Questions that the runs of tests/data alone answer with nothing, as do specimens without a database.
NEEDS_REPORTS = {"01", "02", "03", "04", "06", "07"}


def fleet(place):
    """Four parts of one experiment, of which the last did half of what the others did and began late."""
    sample = pathlib.Path("tests/data/runs/format-1-sweep")
    for number in range(4):
        part = pathlib.Path(place) / f"host{number}" / "run"
        part.parent.mkdir(parents=True)
        shutil.copytree(sample, part)
        document = json.loads((part / "run.json").read_text())
        document["environment"]["hostname"] = f"host{number}"
        is_last = number == 3
        document["part"] = {
            "number": number, "parts": 4, "source": "--part", "configuration": "c0ffee",
            "start_at_ns": 1_790_000_000_000_000_000, "start_error_ns": 9_000_000 if is_last else 100_000,
        }
        for step in document["steps"]:
            if is_last:
                step["counters"]["operations"] //= 2
        (part / "run.json").write_text(json.dumps(document))


def ask(place):
    import duckdb

    place = pathlib.Path(place)
    connection = duckdb.connect()
    connection.execute(f"SET file_search_path = '{place}'")
    queries = pathlib.Path("examples/queries")
    connection.execute((queries / "tables.sql").read_text())
    failed = []
    for table in TABLES:
        form = f"'{place}/csv/{table}-*.csv', all_varchar = true"
        here = connection.execute(f"SELECT count(*), count(DISTINCT run) FROM {table}").fetchone()
        there = connection.execute(f"SELECT count(*), count(DISTINCT run) FROM read_csv({form})").fetchone()
        print(f"{table}: {here[0]} rows")
        if here != there:
            failed.append(f"{table}: {here} rows and runs in Parquet, {there} in CSV")
        lost = connection.execute(f"SELECT count(*) FROM {table} ANTI JOIN runs USING (run)").fetchone()[0]
        if lost:
            failed.append(f"{table}: {lost} rows of no run")
    twice = connection.execute("SELECT count(*) - count(DISTINCT run) FROM runs").fetchone()[0]
    if twice:
        failed.append(f"runs: {twice} names are there twice")
    has_databases = connection.execute("SELECT count(*) FROM runs WHERE workload = 'database'").fetchone()[0] > 9
    for query in sorted(queries.glob("[0-9]*.sql")):
        rows = []
        for statement in connection.extract_statements(query.read_text()):
            rows = connection.execute(statement).fetchall()
        print(f"{query.name}: {len(rows)} rows")
        if not rows and (has_databases or query.name[:2] not in NEEDS_REPORTS):
            failed.append(f"{query.name}: no rows")
        if query.name.startswith("10"):
            named = {row[2] for row in rows if row[0] == "c0ffee"}
            if named != {3}:
                failed.append(f"{query.name}: of parts 0 to 3 only the last differs, not {named}")
    for problem in failed:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    {"fleet": fleet, "ask": ask}[sys.argv[1]](sys.argv[2])
