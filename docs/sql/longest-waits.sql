-- Which intervals without work are the longest?
SELECT s.location AS location, s.start_ns AS start_ns, s.end_ns - s.start_ns AS ns, s.state AS state, s.cause AS cause
FROM state s
WHERE s.cause <> 'work' AND s.state NOT IN ('not_started', 'ended')
ORDER BY ns DESC, location, start_ns
LIMIT 20
