// Puts version 6 of the AI SDK in the place of version 7: node --import ./test/ai-6.mjs
import { register } from "node:module";

process.env.TEST_AI = "6";
register(
  `data:text/javascript,${encodeURIComponent(`
    export const resolve = (name, context, next) => next(/^ai(\\/|$)/.test(name) ? name.replace("ai", "ai-6") : name, context);
  `)}`,
  import.meta.url,
);
