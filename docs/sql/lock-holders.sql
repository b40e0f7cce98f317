-- Which threads hold the locks that others wait for?
SELECT o.name AS object, w.kind AS kind, h.tid AS holder, s.function AS holder_function, s.line AS line,
       CAST(SUM(w.end_ns - w.start_ns) AS BIGINT) AS waited_ns, COUNT(*) AS waits
FROM wait w LEFT JOIN object o ON w.object = o.object
LEFT JOIN location h ON w.holder_location = h.location LEFT JOIN site s ON w.holder_site = s.site
GROUP BY o.name, w.kind, h.tid, s.function, s.line
ORDER BY waited_ns DESC, object, holder, holder_function, line
