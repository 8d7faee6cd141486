"""The floor of table E: a tool's class in a plain interpreter, without a host.

python3 mill.py KIT TOOL LOG  answers each line on standard input, a payload in
JSON, with how long validate_inputs, execute and summarize_for_llm took, in
nanoseconds, and how many matches they found.
"""

import json
import logging
import sys
import time

kit, directory, log = sys.argv[1:]
sys.path[:0] = [kit, directory]

from framework.plugins.protocol import ArtifactRef, ExecutionContext  # noqa: E402
from tool import LineSearch  # noqa: E402

context = ExecutionContext(
    session_id="sess_000000000000",
    selected_pillar="log_analysis",
    artifacts=[ArtifactRef("art_00000000", "log_stream", log)],
    config={},
    logger=logging.getLogger("eventmill.plugin.line_search"),
    reference_data={},
    llm_enabled=False,
    llm_query=None,
    register_artifact=None,
    limits={},
)
instance = LineSearch()
for line in sys.stdin:
    payload = json.loads(line)
    begin = time.perf_counter_ns()
    if not instance.validate_inputs(payload).ok:
        sys.exit("the payload was refused")
    result = instance.execute(payload, context)
    if not result.ok or not instance.summarize_for_llm(result):
        sys.exit(result.message)
    took = time.perf_counter_ns() - begin
    print(took, result.result["matches"], flush=True)
