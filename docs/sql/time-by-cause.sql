-- How is the time of the workers used?
SELECT l.run AS run, s.cause AS cause, CAST(SUM(s.end_ns - s.start_ns) AS BIGINT) AS ns, COUNT(*) AS intervals
FROM state s JOIN location l ON s.location = l.location
GROUP BY l.run, s.cause
ORDER BY run, ns DESC, cause
