-- Which code do the others wait for?
SELECT run, blamed, place, CAST(SUM(ns) AS BIGINT) AS ns
FROM blame
GROUP BY run, blamed, place
ORDER BY ns DESC, run, blamed, place
LIMIT 20
