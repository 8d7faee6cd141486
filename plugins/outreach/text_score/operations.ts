import { Plugin, t } from "mortise";
import { score } from "./rubric.ts";

export const plugin = new Plugin("Text.Score", { version: "1.0.0" });

plugin.tool(
  "Text.Score",
  {
    description: "Score an outreach text by a fixed rubric.",
    input: { text: t.string({ maxLength: 65536 }), names: t.array(t.string({ minLength: 1, maxLength: 200 }), { maxItems: 20, default: [] }) },
    output: t.object({
      score: t.integer({ minimum: 0, maximum: 100 }),
      findings: t.array(t.object({ rule: t.string(), points: t.integer(), most: t.integer(), text: t.string() })),
    }),
  },
  ({ text, names }) => score(text, names),
);
