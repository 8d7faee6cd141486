// Operations as tools of the AI SDK (package ai, versions 6 and 7).
//
// A tool's call is submitted when the AI SDK asks whether it needs approval. Where policy at the host lets it run, it has run
// then, and execute gets its result under the same key. Where a person has to approve, the AI SDK stops with a
// tool-approval-request. The response to that changes nothing at the host: resolve reads there what was decided.

import { type ModelMessage, type ToolApprovalResponse, type ToolSet, dynamicTool, jsonSchema } from "ai";
import { type Client, type Pending, failureOf } from "./client.ts";
import { ApprovalPending, ArgumentsChanged, MortiseError } from "./errors.ts";
import { ToolCalls, type ToolOptions, isAnswer, isRefusal, toolsOf } from "./toolcalls.ts";

/** A tool call that waits for a person. */
export interface WaitingToolCall extends Pending {
  toolCallId: string;
}

export interface Resolved {
  /** For a message of the role tool: what the host has decided, and nothing else. */
  responses: ToolApprovalResponse[];
  /** What still waits. */
  pending: WaitingToolCall[];
}

type Asked = (input: unknown, options: { toolCallId: string; messages: ModelMessage[] }) => Promise<"user-approval" | undefined>;

export interface VercelTools {
  /** For generateText, streamText and agents. */
  tools: ToolSet;
  /** The same rule as a setting, for version 7, which prefers it to the rule that each of the tools has. */
  toolApproval: Record<string, Asked>;
  /** Asks the host about each request for approval that has no response yet. */
  resolve(messages: readonly ModelMessage[]): Promise<Resolved>;
  /** Withdraws what waits, so that it can no longer be approved, and says so in responses. */
  withdraw(messages: readonly ModelMessage[], reason: string): Promise<Resolved>;
}

/** Offers operations of the host as tools. Make them for each conversation, with its id as the scope. */
export async function mortiseTools(client: Client, options: ToolOptions = {}): Promise<VercelTools> {
  const calls = new ToolCalls(client, options);
  const operations = new Map<string, string>();
  const tools: ToolSet = {};
  const toolApproval: Record<string, Asked> = {};
  for (const { name, description, operation } of await toolsOf(client, options)) {
    operations.set(name, operation.name);
    const waits = async (input: unknown, { toolCallId, messages }: { toolCallId: string; messages: ModelMessage[] }): Promise<boolean> => {
      // The AI SDK asks again before it executes what its messages say was approved.
      const approved = requestsOf(messages).some((request) => request.toolCallId === toolCallId && request.approved);
      let pending: Pending | undefined;
      try {
        pending = await calls.pending(operation.name, toolCallId, input);
      } catch (error) {
        if (error instanceof ArgumentsChanged || !(error instanceof MortiseError)) throw error;
        return approved; // execute meets the same refusal, and the model reads it
      }
      if (pending && approved) throw new ApprovalPending(pending);
      return approved || pending !== undefined;
    };
    toolApproval[name] = async (input, context) => ((await waits(input, context)) ? "user-approval" : undefined);
    tools[name] = dynamicTool({
      description,
      inputSchema: jsonSchema(operation.input_schema),
      needsApproval: waits,
      execute: (input, { toolCallId, abortSignal }) => calls.result(operation.name, toolCallId, input, { signal: abortSignal }),
    });
  }

  async function each(messages: readonly ModelMessage[], waiting: (pending: WaitingToolCall) => Promise<string | undefined>): Promise<Resolved> {
    const resolved: Resolved = { responses: [], pending: [] };
    const answer = (approvalId: string, approved: boolean, reason?: string): void => {
      resolved.responses.push({ type: "tool-approval-response", approvalId, approved, ...(reason !== undefined && { reason }) });
    };
    for (const { approvalId, toolCallId, toolName, input, approved } of requestsOf(messages)) {
      const operation = operations.get(toolName);
      if (approved !== undefined || operation === undefined) continue;
      let refused: MortiseError | undefined;
      try {
        const outcome = await calls.submit(operation, toolCallId, input, { waitMs: 0 });
        const pending = client.pending(outcome);
        if (pending) {
          const reason = await waiting({ ...pending, toolCallId });
          if (reason !== undefined) answer(approvalId, false, reason);
          else resolved.pending.push({ ...pending, toolCallId });
          continue;
        }
        refused = failureOf(outcome);
      } catch (error) {
        if (!isAnswer(error)) throw error;
        refused = error;
      }
      if (refused && isRefusal(refused)) answer(approvalId, false, refused.message);
      else answer(approvalId, true);
    }
    return resolved;
  }

  return {
    tools,
    toolApproval,
    resolve: (messages) => each(messages, async () => undefined),
    withdraw: (messages, reason) =>
      each(messages, async ({ callId }) => {
        await client.cancel(callId, reason);
        return reason;
      }),
  };
}

interface Request {
  approvalId: string;
  toolCallId: string;
  toolName: string;
  input: unknown;
  /** undefined where there is no response. */
  approved: boolean | undefined;
}

function requestsOf(messages: readonly ModelMessage[]): Request[] {
  const calls = new Map<string, { toolName: string; input: unknown }>();
  const requests = new Map<string, string>();
  const responses = new Map<string, boolean>();
  for (const message of messages) {
    if (typeof message.content === "string") continue;
    for (const part of message.content) {
      if (part.type === "tool-call") calls.set(part.toolCallId, part);
      if (part.type === "tool-approval-request") requests.set(part.approvalId, part.toolCallId);
      if (part.type === "tool-approval-response") responses.set(part.approvalId, part.approved);
    }
  }
  return [...requests].flatMap(([approvalId, toolCallId]) => {
    const call = calls.get(toolCallId);
    return call ? [{ approvalId, toolCallId, toolName: call.toolName, input: call.input, approved: responses.get(approvalId) }] : [];
  });
}
