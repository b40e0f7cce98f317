-- How much time did the operating system take, and from which threads?
SELECT l.run AS run, l.tid AS tid, o.cause AS cause, COUNT(*) AS intervals, CAST(SUM(o.end_ns - o.start_ns) AS BIGINT) AS ns
FROM off_cpu o JOIN location l ON o.location = l.location
GROUP BY l.run, l.tid, o.cause
ORDER BY ns DESC, tid, cause
