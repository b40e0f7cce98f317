-- How far can each run be trusted: lost events, uncertain intervals, completeness?
WITH doubt AS (
  SELECT l.run AS run, SUM(u.end_ns - u.start_ns) AS ns
  FROM uncertain u JOIN location l ON u.location = l.location
  GROUP BY l.run)
SELECT r.run AS run, r.complete AS complete, r.events AS events, r.lost_events AS lost_events,
       CAST(COALESCE(d.ns, 0) AS BIGINT) AS uncertain_ns, r.capacity_ns AS capacity_ns
FROM run r LEFT JOIN doubt d ON r.run = d.run
ORDER BY run
