-- Which task types take most time, and how long is one task?
SELECT y.run AS run, y.name AS name, COUNT(*) AS tasks, CAST(SUM(t.running_ns) AS BIGINT) AS running_ns,
       MIN(t.running_ns) AS shortest_ns, MAX(t.running_ns) AS longest_ns
FROM task t JOIN task_type y ON t.task_type = y.task_type
WHERE t.began_ns IS NOT NULL
GROUP BY y.run, y.name
ORDER BY running_ns DESC, run, name
