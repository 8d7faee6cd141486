import { Plugin, t } from "mortise";
import { outcomeKey, toRequest, type ChatEvent } from "./mapping.ts";

export const plugin = new Plugin("Chat.Adapter", { version: "1.0.0" });

// The schemas are in the manifest: the host holds both sides to them.
const event = t.json<ChatEvent>({ type: "object" });
const outcome = t.json<{ url: string; reference: string; status: string; text: string }>({ type: "object" });

plugin.adapter("inbound", { description: "Turn a chat event into a request to the kernel.", input: event }, (input) => toRequest(input));

plugin.adapter(
  "outbound",
  { description: "Ask for an outcome to be written back to the chat.", input: outcome },
  async ({ url, reference, status, text }, ctx) => {
    const body = { reference, status, text };
    const key = outcomeKey(reference, status);
    const answer = await ctx.call("ExternalSystem.WriteOutcome", { url, outcome: body }, { key });
    const { status: ended, data = null } = answer as { status: string; data?: unknown };
    return { status: ended, data };
  },
);
