-- How long did exactly one worker of a run work, and in which state?
WITH serial AS (
  SELECT l.run AS run, s.state AS state, s.end_ns - s.start_ns AS ns
  FROM state s JOIN location l ON s.location = l.location WHERE s.state = 'serial')
SELECT run, state, CAST(SUM(ns) AS BIGINT) AS ns, COUNT(*) AS intervals
FROM serial
GROUP BY run, state
ORDER BY run, state
