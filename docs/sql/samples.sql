-- In which modules is the sampled time?
SELECT p.module AS module, COUNT(*) AS samples, CAST(SUM(s.weight_ns) AS BIGINT) AS ns
FROM sample s JOIN path p ON s.path = p.path
WHERE p.depth = 0
GROUP BY p.module
ORDER BY ns DESC, module
