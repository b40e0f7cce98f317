-- How long do tasks wait after their last awaited task has ended?
WITH last AS (
  SELECT succ, MAX(pred_ended_ns) AS ready_ns, MAX(succ_began_ns) AS began_ns
  FROM dependence
  WHERE pred_ended_ns IS NOT NULL AND succ_began_ns IS NOT NULL
  GROUP BY succ)
SELECT y.name AS name, COUNT(*) AS tasks, CAST(SUM(d.began_ns - d.ready_ns) AS BIGINT) AS lag_ns,
       MAX(d.began_ns - d.ready_ns) AS longest_ns
FROM last d JOIN task t ON d.succ = t.task JOIN task_type y ON t.task_type = y.task_type
WHERE d.began_ns >= d.ready_ns
GROUP BY y.name
ORDER BY lag_ns DESC, name
