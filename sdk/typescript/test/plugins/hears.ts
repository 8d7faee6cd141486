// A plugin that hears of what agents use.

import { once } from "node:events";
import { Plugin } from "mortise";

new Plugin("hears", { version: "1.0.0" })
  .hook("tool.before@v1", {}, async (payload, ctx) => {
    if (payload.toolName === "wait") {
      await once(ctx.signal, "abort");
      ctx.check();
    }
    if (payload.toolName === "much") return { allow: true, payload: { ...payload, args: { text: "a".repeat(10 << 20) } } };
    return { allow: true };
  })
  .run();
