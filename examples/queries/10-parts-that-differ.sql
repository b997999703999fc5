-- Which parts of a fleet did another share of the work than the others, or began late? Parts of one experiment have one
-- configuration and agreed on one start.
WITH part AS (
  SELECT parts.*, label, operations_per_s, response_p99_ns, generator_busiest_share,
         median(operations_per_s) OVER w AS usual_per_s
  FROM parts JOIN steps USING (run)
  WINDOW w AS (PARTITION BY parts.configuration, parts.start_at_ns, label)
)
SELECT configuration, label, part, host, round(operations_per_s) AS operations_per_s, round(usual_per_s) AS usual_per_s,
       round(response_p99_ns / 1e6, 3) AS p99_ms, start_error_ns / 1e6 AS late_ms, clock_bound_ns / 1e6 AS clock_bound_ms
FROM part
WHERE abs(operations_per_s - usual_per_s) > 0.1 * usual_per_s OR abs(start_error_ns) > 5e6
ORDER BY configuration, label, part;
