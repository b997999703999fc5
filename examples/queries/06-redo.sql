-- How much redo does each database write, on average over its windows and at most, and what must be shipped in a day?
SELECT steps.database, steps.database_id, count(*) AS windows,
       round(sum(redo_megabytes_per_s * window_ns) / sum(window_ns), 3) AS redo_megabytes_per_s,
       round(max(redo_megabytes_per_s), 3) AS peak_redo_megabytes_per_s,
       round(sum(redo_megabytes_per_s * window_ns) / sum(window_ns) * 86.4, 1) AS redo_gigabytes_a_day
FROM steps
WHERE redo_megabytes_per_s IS NOT NULL AND window_ns IS NOT NULL
GROUP BY ALL
ORDER BY peak_redo_megabytes_per_s DESC;
