-- Which databases fit a platform of so many IOPS and MB/s, with a fifth of it left? The largest window of each counts.
-- What a database does not report is no demand of nothing: its answer is NULL.
SET VARIABLE iops = 5000;
SET VARIABLE megabytes_per_s = 200;
SELECT steps.database, steps.database_id, count(*) AS windows,
       round(max(io_per_s), 1) AS peak_iops, round(max(megabytes_per_s), 1) AS peak_megabytes_per_s,
       max(io_per_s) <= 0.8 * getvariable('iops')
         AND max(megabytes_per_s) <= 0.8 * getvariable('megabytes_per_s') AS fits
FROM steps JOIN runs USING (run)
WHERE runs.workload = 'database'
GROUP BY ALL
ORDER BY fits, peak_iops DESC NULLS LAST;
