"""Calls operations of a Mortise host over its API.

The adapters of agent frameworks are beside this package's root, each importing its framework:
`mortise_client.langchain` and `mortise_client.openai_agents`.
"""

from ._client import Approval, AsyncClient, Call, Client, Operation, Outcome, Pending, failure_of
from ._errors import ApprovalPending, ArgumentsChanged, MortiseError, mortise_error_of
from ._toolcalls import HostTool, ToolCalls, tools_of

__all__ = [
    "Approval",
    "ApprovalPending",
    "ArgumentsChanged",
    "AsyncClient",
    "Call",
    "Client",
    "HostTool",
    "MortiseError",
    "Operation",
    "Outcome",
    "Pending",
    "ToolCalls",
    "failure_of",
    "mortise_error_of",
    "tools_of",
]
