-- Which member of a collective operation comes last, and by how much?
WITH operation AS (
  SELECT comm, sequence, function, MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns, COUNT(*) AS members
  FROM collective
  GROUP BY comm, sequence, function)
SELECT p.function AS function, p.sequence AS sequence, l.rank AS last_rank, p.members AS members,
       p.last_ns - p.first_ns AS spread_ns
FROM operation p
JOIN collective c ON c.comm = p.comm AND c.sequence = p.sequence AND c.function = p.function AND c.start_ns = p.last_ns
JOIN location l ON c.location = l.location
ORDER BY spread_ns DESC, function, sequence, last_rank
LIMIT 20
