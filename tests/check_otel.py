#!/usr/bin/env python3
"""Reads the spans of `sessions export otel` with the protocol buffers of OpenTelemetry.

    pip install opentelemetry-proto
    python3 tests/check_otel.py SESSIONS [LOGS]

SESSIONS  the binary of this project (give it LD_LIBRARY_PATH if it needs that for libduckdb)
LOGS      a folder of logs; default sample-sessions

Exit code 1 when a line is refused or a span is not valid, 2 when nothing was exported.
"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

ROOT = pathlib.Path(__file__).resolve().parent.parent
ID_BYTES = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def spans_of(line):
    """The spans of a line. OTLP writes ids in hexadecimal digits, protocol buffers expect base64."""
    data = json.loads(line)
    for resource in data["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key, length in ID_BYTES.items():
                    if key in span:
                        raw = bytes.fromhex(span[key])
                        assert len(raw) == length and any(raw), f"{key} {span[key]}"
                        span[key] = base64.b64encode(raw).decode()
    message = json_format.ParseDict(data, TracesData())
    return [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]


def main():
    binary, *rest = sys.argv[1:]
    logs = rest[0] if rest else str(ROOT / "sample-sessions")
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        store, output = f"{folder}/store", pathlib.Path(folder, "spans.jsonl")
        subprocess.run([binary, "ingest", "--quiet", "--store", store, logs], check=True)
        command = [binary, "export", "otel", "--include-content", "--quiet", "--store", store, "-o", output]
        subprocess.run(command, check=True)
        for line in output.read_text().splitlines():
            spans = spans_of(line)
            assert len({span.span_id for span in spans}) == len(spans), "ids occur once"
            for span in spans:
                assert span.start_time_unix_nano <= span.end_time_unix_nano, span.name
                assert any(found.key == "gen_ai.operation.name" for found in span.attributes), span.name
            count += len(spans)
    print(f"{count} spans")
    return 0 if count else 2


if __name__ == "__main__":
    sys.exit(main())
