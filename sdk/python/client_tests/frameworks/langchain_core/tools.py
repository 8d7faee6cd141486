"""StructuredTool with a JSON schema, and ToolException, which handle_tool_error turns into a message."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Union

from .runnables import RunnableConfig, current, ensure_config


class ToolException(Exception):
    """What a tool raises for its model to read."""


@dataclass
class ToolMessage:
    content: str
    tool_call_id: str
    name: str
    status: str = "success"


class StructuredTool:
    def __init__(self, **fields: Any) -> None:
        self.name: str = fields["name"]
        self.description: str = fields["description"]
        self.args_schema: Dict[str, Any] = fields["args_schema"]
        self.func: Callable[..., Any] = fields["func"]
        self.coroutine: Callable[..., Any] = fields["coroutine"]
        self.handle_tool_error: bool = fields.get("handle_tool_error", False)
        self.metadata: Optional[Dict[str, Any]] = fields.get("metadata")

    @classmethod
    def from_function(
        cls,
        func: Callable[..., Any],
        coroutine: Callable[..., Any],
        name: str,
        description: str,
        args_schema: Dict[str, Any],
        infer_schema: bool = True,
        **kwargs: Any,
    ) -> StructuredTool:
        return cls(func=func, coroutine=coroutine, name=name, description=description, args_schema=args_schema, **kwargs)

    def invoke(self, input: Union[str, Dict[str, Any]], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        arguments, tool_call_id = self._parts(input)
        context = contextvars.copy_context()
        context.run(current.set, ensure_config(config))
        try:
            return self._output(context.run(self.func, **arguments), tool_call_id)
        except ToolException as error:
            return self._handled(error, tool_call_id)

    async def ainvoke(self, input: Union[str, Dict[str, Any]], config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        arguments, tool_call_id = self._parts(input)
        token = current.set(ensure_config(config))
        try:
            return self._output(await self.coroutine(**arguments), tool_call_id)
        except ToolException as error:
            return self._handled(error, tool_call_id)
        finally:
            current.reset(token)

    def _parts(self, input: Union[str, Dict[str, Any]]) -> tuple[Dict[str, Any], Optional[str]]:
        if isinstance(input, str):
            raise ValueError("String tool inputs are not allowed when using tools with JSON schema args_schema.")
        if input.get("type") == "tool_call":
            return dict(input["args"]), input["id"]
        return dict(input), None

    def _output(self, content: Any, tool_call_id: Optional[str], status: str = "success") -> Any:
        return content if tool_call_id is None else ToolMessage(content, tool_call_id, self.name, status)

    def _handled(self, error: ToolException, tool_call_id: Optional[str]) -> Any:
        if not self.handle_tool_error:
            raise error
        return self._output(error.args[0], tool_call_id, "error")
