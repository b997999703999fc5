-- At which hour of the day does each database ask most of its storage?
-- Hours are those of the database's own clock, where its reports do not say their zone (`runs.clock`).
SELECT steps.database, steps.instance, hour(steps.started_at) AS hour, count(*) AS windows,
       round(max(io_per_s), 1) AS peak_iops, arg_max(steps.started_at, io_per_s) AS peak_from
FROM steps JOIN runs USING (run)
WHERE runs.workload = 'database' AND io_per_s IS NOT NULL
GROUP BY ALL
ORDER BY peak_iops DESC;
