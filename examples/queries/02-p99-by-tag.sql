-- What do single-block reads and operations take under each value of a tag?
-- Percentiles of one window each: the middle and the worst of them. They do not add up; 09 merges histograms.
SET VARIABLE tag = 'disk';
SELECT tags ->> getvariable('tag') AS tag, count(*) AS steps,
       round(median(coalesce(read_p99_ns / 1e6, read_p99_at_most_ms)), 3) AS read_p99_ms,
       round(max(coalesce(read_p99_ns / 1e6, read_p99_at_most_ms)), 3) AS worst_read_p99_ms,
       round(max(response_p99_ns) / 1e6, 3) AS worst_response_p99_ms
FROM steps JOIN runs USING (run)
WHERE tags ->> getvariable('tag') IS NOT NULL
GROUP BY ALL
ORDER BY tag;
