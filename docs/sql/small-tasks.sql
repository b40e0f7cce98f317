-- How many tasks are shorter than 10 µs, and what share of all task time do they take?
SELECT l.run AS run, COUNT(*) AS tasks, CAST(SUM(CASE WHEN t.running_ns < 10000 THEN 1 ELSE 0 END) AS BIGINT) AS small,
       CAST(SUM(t.running_ns) AS BIGINT) AS running_ns,
       CAST(SUM(CASE WHEN t.running_ns < 10000 THEN t.running_ns ELSE 0 END) AS BIGINT) AS small_ns
FROM task t JOIN location l ON t.runner = l.location
GROUP BY l.run
ORDER BY run
