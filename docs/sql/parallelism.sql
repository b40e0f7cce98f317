-- How many workers work, in 20 bins of each run?
WITH work AS (
  SELECT l.run AS run, s.start_ns AS moment, 1 AS step
  FROM state s JOIN location l ON s.location = l.location WHERE s.cause = 'work'
  UNION ALL
  SELECT l.run AS run, s.end_ns AS moment, -1 AS step
  FROM state s JOIN location l ON s.location = l.location WHERE s.cause = 'work'),
level AS (
  SELECT run, moment, SUM(step) OVER (PARTITION BY run ORDER BY moment, step ROWS UNBOUNDED PRECEDING) AS workers
  FROM work),
binned AS (
  SELECT v.run AS run, CAST(floor((v.moment - r.start_ns) * 20.0 / (r.end_ns - r.start_ns + 1)) AS BIGINT) AS bin,
         v.workers AS workers
  FROM level v JOIN run r ON v.run = r.run)
SELECT run, bin, CAST(MAX(workers) AS BIGINT) AS most_workers
FROM binned
GROUP BY run, bin
ORDER BY run, bin
