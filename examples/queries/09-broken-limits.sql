-- Which steps broke a limit: more than one operation in a hundred took as long as this, by histograms and not by percentiles.
-- A bucket that holds the limit counts as within it, so a step of ours that is named broke it surely. Wider buckets of other
-- programs count where they end: of these it may have.
SET VARIABLE limit_ms = 8;
SELECT run, steps.label, any_value(round(operations_per_s)) AS operations_per_s,
       round(100.0 * sum(count) FILTER (lower_ns >= getvariable('limit_ms') * 1e6) / sum(count), 3) AS percent_over,
       any_value(round(response_p99_ns / 1e6, 3)) AS p99_ms
FROM buckets JOIN steps USING (run, step)
WHERE buckets."of" = 'response' AND buckets.instance IS NULL
GROUP BY run, step, steps.label
HAVING percent_over > 1
ORDER BY percent_over DESC;
