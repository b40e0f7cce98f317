-- How busy are the device queues, and how long do operations wait in them?
SELECT l.name AS queue, o.kind AS kind, COUNT(*) AS operations, CAST(SUM(o.end_ns - o.start_ns) AS BIGINT) AS busy_ns,
       CAST(SUM(o.start_ns - o.append_ns) AS BIGINT) AS queued_ns, CAST(SUM(o.bytes) AS BIGINT) AS bytes
FROM device_operation o JOIN location l ON o.location = l.location
GROUP BY l.name, o.kind
ORDER BY busy_ns DESC, queue, kind
