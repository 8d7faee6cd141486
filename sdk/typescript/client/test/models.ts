// Models that follow a script: a call of one tool, and then an answer.

import { type Model, type ModelRequest, type ModelResponse, Usage } from "@openai/agents";
import { MockLanguageModelV3 } from "ai/test";

/** Of the AI SDK: asks for one tool call, and then says "done". */
export function modelThat(toolName: string, input: unknown, toolCallId = "call-1"): MockLanguageModelV3 {
  let said = false;
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  return new MockLanguageModelV3({
    doGenerate: async () => {
      if (said) return { content: [{ type: "text", text: "done" }], finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] };
      said = true;
      return { content: [{ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) }], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] };
    },
  });
}

/** Of OpenAI Agents: asks for one tool call, and then says what came of it. */
export class Script implements Model {
  readonly #name: string;
  readonly #arguments: string;
  constructor(name: string, input: unknown) {
    this.#name = name;
    this.#arguments = typeof input === "string" ? input : JSON.stringify(input);
  }
  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    const result = typeof input === "string" ? undefined : input.find((item) => item.type === "function_call_result");
    const output: ModelResponse["output"] = result
      ? [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: JSON.stringify(result) }] }]
      : [{ type: "function_call", callId: "call-1", name: this.#name, arguments: this.#arguments, status: "completed" }];
    return { usage: new Usage(), output };
  }
  // eslint-disable-next-line require-yield -- these runs are not streamed
  async *getStreamedResponse(): AsyncGenerator<never> {
    throw new Error("not streamed");
  }
}
