-- Which workers lost most time?
SELECT l.run AS run, l.location AS location, l.kind AS kind, l.tid AS tid, CAST(SUM(s.end_ns - s.start_ns) AS BIGINT) AS lost_ns
FROM state s JOIN location l ON s.location = l.location
WHERE s.cause <> 'work'
GROUP BY l.run, l.location, l.kind, l.tid
ORDER BY lost_ns DESC, location
