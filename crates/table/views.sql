-- Views over the tables of taskscope, for DuckDB. Open it in the directory of the data set:
--   duckdb -init views.sql
-- Tables come first, then the questions. Times are nanoseconds since time 0 of the run.

CREATE OR REPLACE VIEW run AS SELECT * FROM read_parquet('run/*.parquet');
CREATE OR REPLACE VIEW process AS SELECT * FROM read_parquet('process/*.parquet');
CREATE OR REPLACE VIEW location AS SELECT * FROM read_parquet('location/*.parquet');
CREATE OR REPLACE VIEW task_type AS SELECT * FROM read_parquet('task_type/*.parquet');
CREATE OR REPLACE VIEW site AS SELECT * FROM read_parquet('site/*.parquet');
CREATE OR REPLACE VIEW object AS SELECT * FROM read_parquet('object/*.parquet');
CREATE OR REPLACE VIEW counter AS SELECT * FROM read_parquet('counter/*.parquet');
CREATE OR REPLACE VIEW finding AS SELECT * FROM read_parquet('finding/*.parquet');
CREATE OR REPLACE VIEW ledger AS SELECT * FROM read_parquet('ledger/*.parquet');
CREATE OR REPLACE VIEW blame AS SELECT * FROM read_parquet('blame/*.parquet');
CREATE OR REPLACE VIEW region AS SELECT * FROM read_parquet('region/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW state AS SELECT * FROM read_parquet('state/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW task AS SELECT * FROM read_parquet('task/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW dependence AS SELECT * FROM read_parquet('dependence/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW wait AS SELECT * FROM read_parquet('wait/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW message AS SELECT * FROM read_parquet('message/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW collective AS SELECT * FROM read_parquet('collective/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW device_operation AS SELECT * FROM read_parquet('device_operation/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW sample AS SELECT * FROM read_parquet('sample/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW path AS SELECT * FROM read_parquet('path/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW call_path AS SELECT * FROM read_parquet('call_path/*.parquet');
CREATE OR REPLACE VIEW call_path_value AS SELECT * FROM read_parquet('call_path_value/*.parquet');
CREATE OR REPLACE VIEW mark AS SELECT * FROM read_parquet('mark/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW off_cpu AS SELECT * FROM read_parquet('off_cpu/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW loss AS SELECT * FROM read_parquet('loss/*/*.parquet', hive_partitioning = true);
CREATE OR REPLACE VIEW uncertain AS SELECT * FROM read_parquet('uncertain/*/*.parquet', hive_partitioning = true);

-- Worker time that was not work, by run and cause.
CREATE OR REPLACE VIEW idle_by_cause AS
SELECT l.run AS run, s.cause AS cause, s.state AS state,
       SUM(s.end_ns - s.start_ns) AS ns, COUNT(*) AS intervals, MAX(s.end_ns - s.start_ns) AS longest_ns
FROM state s JOIN location l ON s.location = l.location
WHERE s.cause IS NULL OR s.cause <> 'work'
GROUP BY l.run, s.cause, s.state;

-- Waiting time by charged code, over all states of the waiting threads.
CREATE OR REPLACE VIEW blame_by_place AS
SELECT run, blamed, place, SUM(ns) AS ns FROM blame GROUP BY run, blamed, place;

-- Workers at work in each hundredth of a run: average number.
CREATE OR REPLACE VIEW parallelism_over_time AS
WITH bins AS (
  SELECT r.run AS run, b.bin AS bin,
         r.start_ns + (r.end_ns - r.start_ns) * b.bin / 100.0 AS begins,
         r.start_ns + (r.end_ns - r.start_ns) * (b.bin + 1) / 100.0 AS ends
  FROM run r CROSS JOIN (
    SELECT tens.d * 10 + ones.d AS bin
    FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS tens(d)
    CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS ones(d)) b
  WHERE r.end_ns > r.start_ns),
work AS (
  SELECT l.run AS run, s.start_ns AS start_ns, s.end_ns AS end_ns
  FROM state s JOIN location l ON s.location = l.location
  WHERE s.cause = 'work' OR s.state = 'task')
SELECT b.run AS run, b.bin AS bin, CAST(b.begins AS BIGINT) AS start_ns,
       COALESCE(SUM(LEAST(w.end_ns, b.ends) - GREATEST(w.start_ns, b.begins)), 0) / (b.ends - b.begins) AS workers
FROM bins b LEFT JOIN work w ON w.run = b.run AND w.start_ns < b.ends AND w.end_ns > b.begins
GROUP BY b.run, b.bin, b.begins, b.ends;

-- Task types: number, time in their bodies.
CREATE OR REPLACE VIEW task_types AS
SELECT y.run AS run, y.name AS name, COUNT(*) AS tasks, SUM(t.running_ns) AS running_ns,
       AVG(t.running_ns) AS mean_ns, MAX(t.running_ns) AS longest_ns
FROM task t JOIN task_type y ON t.task_type = y.task_type
WHERE t.began_ns IS NOT NULL
GROUP BY y.run, y.name;

-- The longest intervals without work.
CREATE OR REPLACE VIEW longest_waits AS
SELECT l.run AS run, l.location AS location, l.name AS name, s.start_ns AS start_ns,
       s.end_ns - s.start_ns AS ns, s.state AS state, s.cause AS cause
FROM state s JOIN location l ON s.location = l.location
WHERE s.cause <> 'work' AND s.state NOT IN ('not_started', 'ended')
ORDER BY ns DESC, start_ns LIMIT 100;

-- Time between the end of the last awaited task and the start of the waiting one, by type of the waiting task.
CREATE OR REPLACE VIEW dependence_lag AS
WITH last AS (
  SELECT succ, MAX(pred_ended_ns) AS ready_ns, MAX(succ_began_ns) AS began_ns
  FROM dependence WHERE pred_ended_ns IS NOT NULL AND succ_began_ns IS NOT NULL GROUP BY succ)
SELECT y.run AS run, y.name AS name, COUNT(*) AS tasks, SUM(last.began_ns - last.ready_ns) AS lag_ns,
       MAX(last.began_ns - last.ready_ns) AS longest_ns
FROM last JOIN task t ON last.succ = t.task JOIN task_type y ON t.task_type = y.task_type
WHERE last.began_ns >= last.ready_ns
GROUP BY y.run, y.name;

-- The chain of declared dependences that ends last: from each task to the awaited task that ended last.
CREATE OR REPLACE VIEW critical_path AS
WITH RECURSIVE ranked AS (
  SELECT d.succ AS succ, d.pred AS pred,
         ROW_NUMBER() OVER (PARTITION BY d.succ ORDER BY d.pred_ended_ns DESC, d.pred) AS place
  FROM dependence d WHERE d.pred IS NOT NULL AND d.pred_ended_ns IS NOT NULL),
latest AS (
  SELECT t.task AS task, ROW_NUMBER() OVER (PARTITION BY y.run ORDER BY t.ended_ns DESC, t.task) AS place
  FROM task t JOIN task_type y ON t.task_type = y.task_type
  WHERE t.ended_ns IS NOT NULL AND t.task IN (SELECT succ FROM dependence)),
chain AS (
  SELECT task, 0 AS step FROM latest WHERE place = 1
  UNION ALL
  SELECT r.pred AS task, c.step + 1 AS step FROM chain c JOIN ranked r ON r.succ = c.task AND r.place = 1)
SELECT y.run AS run, c.step AS step, t.task AS task, y.name AS name, t.began_ns AS began_ns, t.ended_ns AS ended_ns,
       t.running_ns AS running_ns
FROM chain c JOIN task t ON c.task = t.task LEFT JOIN task_type y ON t.task_type = y.task_type;

-- Parallel efficiency of a run, and its factors by location, as in POP: useful time is work.
CREATE OR REPLACE VIEW pop AS
WITH useful AS (
  SELECT l.run AS run, l.location AS location,
         SUM(CASE WHEN e.cause = 'work' THEN e.ns ELSE 0 END) AS work_ns, SUM(e.ns) AS all_ns
  FROM ledger e JOIN location l ON e.location = l.location
  GROUP BY l.run, l.location)
SELECT run, COUNT(*) AS workers, SUM(work_ns) AS work_ns, SUM(all_ns) AS capacity_ns,
       CAST(SUM(work_ns) AS DOUBLE) / SUM(all_ns) AS parallel_efficiency,
       CASE WHEN MAX(work_ns) > 0 THEN AVG(CAST(work_ns AS DOUBLE)) / MAX(work_ns) END AS load_balance
FROM useful GROUP BY run HAVING SUM(all_ns) > 0;

-- Device queues: busy time of operations and bytes, by kind.
CREATE OR REPLACE VIEW device_overlap AS
SELECT l.run AS run, l.location AS location, l.name AS queue, o.kind AS kind, COUNT(*) AS operations,
       SUM(o.end_ns - o.start_ns) AS busy_ns, SUM(o.bytes) AS bytes,
       SUM(o.start_ns - o.append_ns) AS queued_ns
FROM device_operation o JOIN location l ON o.location = l.location
GROUP BY l.run, l.location, l.name, o.kind;

-- Messages between processes: number, bytes, and time from send to arrival.
CREATE OR REPLACE VIEW message_matrix AS
SELECT a.run AS run, a.process AS sender, b.process AS receiver, COUNT(*) AS messages, SUM(m.bytes) AS bytes,
       SUM(m.received_ns - m.sent_ns) AS under_way_ns
FROM message m JOIN location a ON m.sender = a.location JOIN location b ON m.receiver = b.location
GROUP BY a.run, a.process, b.process;
