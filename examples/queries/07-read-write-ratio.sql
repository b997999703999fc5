-- How many of the requests to storage are reads? By database, weighted by the length of its windows.
SELECT steps.database, steps.database_id,
       round(sum(reads_per_s * window_ns) / 1e9) AS reads, round(sum(writes_per_s * window_ns) / 1e9) AS writes,
       round(100 * sum(reads_per_s * window_ns) / nullif(sum((reads_per_s + writes_per_s) * window_ns), 0), 1) AS reads_percent
FROM steps
WHERE reads_per_s IS NOT NULL AND writes_per_s IS NOT NULL AND window_ns IS NOT NULL
GROUP BY ALL
ORDER BY reads_percent DESC NULLS LAST;
