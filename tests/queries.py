"""Makes runs of a fleet, and asks DuckDB the questions of examples/queries; see tests/queries. `many DIR` makes 100,000 windows of
databases, and `measure DIR` times questions about the tables that they were exported to: the figures of dev/performance.md."""

import datetime
import json
import pathlib
import random
import shutil
import sys
import time

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


def many(place):
    """Reports of 100,000 hours of 20 databases, 25 to a run: what an archive of a year is after its import."""
    chance = random.Random(1)
    events = ["db file sequential read", "db file scattered read", "log file sync", "log file parallel write", "direct path read"]
    for number in range(4_000):
        database, at = number % 20, 25 * (number // 20)
        began = datetime.datetime(2025, 1, 1) + datetime.timedelta(hours=at)
        steps = [window(chance, index, at + index, database, events) for index in range(25)]
        run = {
            "format": 1, "id": f"{began:%Y%m%d-%H%M%S}-awr-{number}", "name": f"DB{database}", "load": {"kind": "foreign", "workload": "database"},
            "tool": {"name": "Oracle Database", "version": "19.0.0.0.0"}, "command": [], "notes": [], "tags": {}, "parameters": {},
            "started_at": f"{began:%Y-%m-%dT%H:%M:%SZ}", "outcome": "completed", "steps": steps,
            "target": {"kind": "oracle", "address": f"DB{database}/DB{database}1", "facts": {}},
            "environment": {"devices": []}, "imported": {"files": [], "clock": "wall", "not_understood": []},
        }
        directory = pathlib.Path(place) / run["id"]
        directory.mkdir(parents=True)
        (directory / "run.json").write_text(json.dumps(run))


def window(chance, index, hour, database, events):
    seconds = 3_600
    busy = 1 + hour % 24 * (24 - hour % 24) / 40
    reads = int(seconds * (500 + 40 * database) * busy * chance.uniform(0.9, 1.1) * (1 + hour / 20_000))
    writes = int(reads * chance.uniform(0.2, 0.4))
    return {
        "index": index, "label": f"snapshots {hour} to {hour + 1}", "load": {}, "parameters": {}, "outcome": "completed",
        "window": {"offset_ns": index * seconds * 10**9, "warmup_ns": 0, "duration_ns": seconds * 10**9, "ending": "unknown"},
        "counters": {
            "logical_reads": reads * chance.randint(20, 30), "physical_reads": reads, "physical_read_bytes": reads * 8192,
            "physical_writes": writes, "physical_write_bytes": writes * 8192, "redo_bytes": writes * chance.randint(500, 1500),
            "commits": writes // chance.randint(3, 9),
        },
        "operations": [], "devices": [],
        "waits": [wait(chance, event, reads // (1 + place)) for place, event in enumerate(events)],
    }


def wait(chance, event, count):
    """In the fourteen buckets that AWR has, the most at about a millisecond."""
    shares = [chance.uniform(0.5, 1.5) * 2.0 ** -abs(place - 5) for place in range(14)]
    counts = [int(count * share / sum(shares)) for share in shares]
    buckets = [
        {"from_ns": 0 if place == 0 else 16_000 << place, "to_ns": 32_000 << place, "count": count}
        for place, count in enumerate(counts) if count
    ]
    total = sum(bucket["count"] * bucket["to_ns"] * 3 // 4 for bucket in buckets)
    return {
        "event": event, "class": "User I/O", "layer": "engine", "foreground": True,
        "waits": {"count": sum(counts), "total_ns": total, "reported": buckets},
    }


def measure(place):
    """p95 and slope for each database, and the merge of all histograms by week, in one thread: the best of five."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    questions = {
        "p95 and slope": f"""SELECT database, quantile_cont(io_per_s, 0.95), regr_slope(io_per_s, epoch(started_at))
            FROM '{place}/steps-*.parquet' GROUP BY ALL""",
        "weekly merge": f"""SELECT database, date_trunc('week', started_at) AS week, name, lower_ns, sum(count)
            FROM '{place}/buckets-*.parquet' JOIN '{place}/steps-*.parquet' USING (run, step) GROUP BY ALL""",
    }
    for name, question in questions.items():
        times = []
        for _ in range(5):
            began = time.process_time()
            rows = connection.execute(question).fetchall()
            times.append(time.process_time() - began)
        print(f"{name}: {len(rows)} rows, {min(times):.3f} s of processor time")
    for file in sorted(pathlib.Path(place).glob("*.parquet")):
        rows = connection.execute(f"SELECT count(*) FROM '{file}'").fetchone()[0]
        print(f"{file.name}: {rows} rows, {file.stat().st_size / 1e6:.1f} MB")


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
    {"fleet": fleet, "ask": ask, "many": many, "measure": measure}[sys.argv[1]](sys.argv[2])
