"""The server of Event Mill tools.

server    frames in, frames out; one call at a time
tools     finds the tools of a package and loads their classes
tree      the package `plugins` that tools import each other from, in the processes they start too
execute   one call: validate_inputs, execute, summarize_for_llm
context   the ExecutionContext of a call
artifacts files of a session: found for the payload, registered, saved
llm       the LLMQueryInterface
reference the reference data view
answer    what a tool returned, read and spelled for the wire
plain     values that JSON does not know
missing   packages that are not installed
records   log records on their way to the host
workspace the working directory
contract  the contract tests

Only `server` is loaded at a start; the rest comes with the first call.
"""
