-- Which task types wait for which?
SELECT a.name AS awaited, b.name AS waiting, COUNT(*) AS dependences
FROM dependence d
JOIN task p ON d.pred = p.task JOIN task_type a ON p.task_type = a.task_type
JOIN task s ON d.succ = s.task JOIN task_type b ON s.task_type = b.task_type
GROUP BY a.name, b.name
ORDER BY dependences DESC, awaited, waiting
