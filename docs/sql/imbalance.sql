-- How uneven is the work of the workers of a run?
WITH work AS (
  SELECT l.run AS run, l.location AS location, SUM(CASE WHEN e.cause = 'work' THEN e.ns ELSE 0 END) AS ns
  FROM ledger e JOIN location l ON e.location = l.location
  GROUP BY l.run, l.location)
SELECT run, COUNT(*) AS workers, CAST(MIN(ns) AS BIGINT) AS least_ns, CAST(MAX(ns) AS BIGINT) AS most_ns
FROM work
GROUP BY run
ORDER BY run
