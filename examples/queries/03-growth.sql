-- How much does each database grow in a week? The slope of a straight line through its windows, and p95 of the whole time.
-- `plimsoll trend` compares like hours of like days, which a wild day does not bend; this is the quick look at many.
SELECT steps.database, steps.database_id, count(*) AS windows,
       date_diff('day', min(steps.started_at), max(steps.started_at)) AS days,
       round(quantile_cont(io_per_s, 0.95), 1) AS p95_iops,
       round(regr_slope(io_per_s, epoch(steps.started_at)) * 7 * 86400, 3) AS iops_more_each_week
FROM steps JOIN runs USING (run)
WHERE runs.workload = 'database' AND io_per_s IS NOT NULL
GROUP BY ALL
HAVING windows >= 2
ORDER BY iops_more_each_week DESC NULLS LAST;
