// Operations as tools of OpenAI Agents (package @openai/agents).
//
// A tool's call is submitted when the runner asks whether it needs approval. Where policy at the host lets it run, it has run
// then, and execute gets its result under the same key. Where a person has to approve, the run ends with an interruption.
// Approving that in the run's state changes nothing at the host: resolve reads there what was decided.

import { randomUUID } from "node:crypto";
import { type FunctionTool, type RunState, type RunToolApprovalItem, tool } from "@openai/agents";
import { type Client, type Pending, failureOf } from "./client.ts";
import { ApprovalPending, ArgumentsChanged, MortiseError, mortiseErrorOf } from "./errors.ts";
import { ToolCalls, type ToolOptions, isAnswer, isRefusal, told, toolsOf } from "./toolcalls.ts";

/** A tool call that waits for a person. */
export interface WaitingToolCall extends Pending {
  toolCallId: string;
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the state of any agent
type AnyState = RunState<any, any>;

export interface AgentTools {
  tools: FunctionTool<unknown, never, unknown>[];
  /** Approves and rejects the interruptions about which the host has decided, and returns those that still wait. */
  resolve(state: AnyState): Promise<WaitingToolCall[]>;
  /** Withdraws what waits, so that it can no longer be approved, and rejects the interruptions. */
  withdraw(state: AnyState, reason: string): Promise<void>;
}

/** Offers operations of the host as tools. Make them for each conversation, with its id as the scope. */
export async function mortiseTools(client: Client, options: ToolOptions = {}): Promise<AgentTools> {
  const calls = new ToolCalls(client, options);
  const operations = new Map<string, string>();
  const tools = (await toolsOf(client, options)).map(({ name, description, operation }) => {
    operations.set(name, operation.name);
    const made = tool({
      name,
      description,
      parameters: parametersOf(operation.input_schema),
      strict: false,
      async needsApproval(_context, input, toolCallId) {
        if (toolCallId === undefined) return false;
        try {
          return (await calls.pending(operation.name, toolCallId, input)) !== undefined;
        } catch (error) {
          if (error instanceof ArgumentsChanged || !(error instanceof MortiseError)) throw error;
          return false; // execute meets the same refusal, and the model reads it
        }
      },
      async execute(input, _context, details) {
        const data = await calls.result(operation.name, details?.toolCall?.callId ?? randomUUID(), input, { signal: details?.signal });
        return typeof data === "string" ? data : JSON.stringify(data); // an object could be taken for a picture or a file
      },
      errorFunction(_context, error) {
        const known = mortiseErrorOf(error);
        // The program has to see these: the run and the host disagree.
        if (!known || known instanceof ApprovalPending || known instanceof ArgumentsChanged) {
          if (error instanceof Error && error.name === "InvalidToolInputError") return told(new MortiseError("invalid_input", "the arguments are no JSON"));
          throw known ?? error;
        }
        return told(known);
      },
    });
    return made as unknown as FunctionTool<unknown, never, unknown>;
  });

  async function each(state: AnyState, waiting: (item: RunToolApprovalItem, pending: WaitingToolCall) => Promise<void>): Promise<void> {
    for (const item of state.getInterruptions()) {
      const operation = operations.get(item.name ?? "");
      if (operation === undefined || item.rawItem.type !== "function_call") continue;
      const toolCallId = item.rawItem.callId;
      let refused: MortiseError | undefined;
      let input: unknown;
      try {
        input = JSON.parse(item.rawItem.arguments);
      } catch {
        state.reject(item, { message: told(new MortiseError("invalid_input", "the arguments are no JSON")) }); // the host knows no such call
        continue;
      }
      try {
        const outcome = await calls.submit(operation, toolCallId, input, { waitMs: 0 });
        const pending = client.pending(outcome);
        if (pending) {
          await waiting(item, { ...pending, toolCallId });
          continue;
        }
        refused = failureOf(outcome);
      } catch (error) {
        if (!isAnswer(error)) throw error;
        refused = error;
      }
      if (refused && isRefusal(refused)) state.reject(item, { message: told(refused) });
      else state.approve(item);
    }
  }

  return {
    tools,
    async resolve(state) {
      const found: WaitingToolCall[] = [];
      await each(state, async (_item, pending) => void found.push(pending));
      return found;
    },
    withdraw: (state, reason) =>
      each(state, async (item, { callId }) => {
        await client.cancel(callId, reason);
        state.reject(item, { message: reason });
      }),
  };
}

type Parameters = { type: "object"; properties: Record<string, never>; required: string[]; additionalProperties: true };

// The types of the package know less of JSON Schema than models do; the host checks the arguments in any case.
function parametersOf(schema: Record<string, unknown>): Parameters {
  return { properties: {}, required: [], ...schema, type: "object" } as unknown as Parameters;
}
