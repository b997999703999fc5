-- What did sessions of each database wait for longest? The first three events of each.
SELECT steps.database, event, class, sum(session_count) AS waits,
       round(sum(session_total_ns) / 1e9, 1) AS waited_s,
       round(sum(session_total_ns) / nullif(sum(session_count), 0) / 1e6, 3) AS mean_ms
FROM waits JOIN steps USING (run, step)
WHERE waits.instance IS NULL AND class IS DISTINCT FROM 'Idle' AND session_total_ns IS NOT NULL
GROUP BY steps.database, event, class
QUALIFY row_number() OVER (PARTITION BY steps.database ORDER BY waited_s DESC) <= 3
ORDER BY steps.database, waited_s DESC;
