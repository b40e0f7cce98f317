-- How long are tasks between creation and start?
SELECT y.name AS name, COUNT(*) AS tasks, CAST(SUM(t.began_ns - t.created_ns) AS BIGINT) AS waited_ns,
       MAX(t.began_ns - t.created_ns) AS longest_ns
FROM task t JOIN task_type y ON t.task_type = y.task_type
WHERE t.began_ns IS NOT NULL AND t.created_ns IS NOT NULL
GROUP BY y.name
ORDER BY waited_ns DESC, name
