// Calls operations of a Mortise host. The adapters of frameworks are beside this module: mortise-client/vercel and
// mortise-client/openai-agents.

export { Client, failureOf } from "./client.ts";
export type { Approval, Call, ClientOptions, ExecuteOptions, Failure, Operation, OperationSchemas, Outcome, Pending, Status } from "./client.ts";
export { ApprovalPending, ArgumentsChanged, MortiseError, mortiseErrorOf } from "./errors.ts";
export { ToolCalls, toolsOf } from "./toolcalls.ts";
export type { HostTool, ToolOptions } from "./toolcalls.ts";
