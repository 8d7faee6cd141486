import { Plugin, t } from "mortise";

const plugin = new Plugin("text.word_count", { version: "1.0.0" });

plugin.tool("word_count", {
  description: "Count the words in a text.",
  input: { text: t.string() },
  output: t.integer(),
}, ({ text }) => text.split(/\s+/).filter(Boolean).length);

plugin.run();
