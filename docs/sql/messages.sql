-- Which processes exchange most messages, and how late are they received?
SELECT a.rank AS sender, b.rank AS receiver, COUNT(*) AS messages, CAST(SUM(m.bytes) AS BIGINT) AS bytes,
       CAST(SUM(CASE WHEN m.posted_ns < m.sent_ns THEN m.sent_ns - m.posted_ns ELSE 0 END) AS BIGINT) AS late_sender_ns
FROM message m JOIN location a ON m.sender = a.location JOIN location b ON m.receiver = b.location
GROUP BY a.rank, b.rank
ORDER BY messages DESC, sender, receiver
