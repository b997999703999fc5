-- Which seconds lie far from the others of their step? By the median and the median of the distances from it, which a few wild
-- seconds do not move; 1.4826 makes of that a standard deviation where values are normal.
WITH measured AS (
  SELECT run, step, offset_ns, operations_per_s, median(operations_per_s) OVER w AS middle
  FROM intervals WHERE NOT warmup AND operations_per_s IS NOT NULL
  WINDOW w AS (PARTITION BY run, step)
), spread AS (
  SELECT *, 1.4826 * median(abs(operations_per_s - middle)) OVER (PARTITION BY run, step) AS deviation FROM measured
)
SELECT run, step, offset_ns / 1e9 AS second, round(operations_per_s) AS operations_per_s, round(middle) AS usual,
       round((operations_per_s - middle) / deviation, 1) AS deviations
FROM spread
WHERE deviation > 0 AND abs(operations_per_s - middle) > 5 * deviation
ORDER BY abs(deviations) DESC
LIMIT 100;
