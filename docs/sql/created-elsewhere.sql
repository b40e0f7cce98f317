-- How many tasks run on another worker than the one that created them?
SELECT y.name AS name, COUNT(*) AS tasks, CAST(SUM(CASE WHEN t.creator <> t.runner THEN 1 ELSE 0 END) AS BIGINT) AS moved
FROM task t JOIN task_type y ON t.task_type = y.task_type
WHERE t.creator IS NOT NULL AND t.runner IS NOT NULL
GROUP BY y.name
ORDER BY moved DESC, name
