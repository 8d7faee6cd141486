// A TypeScript plugin whose one operation answers its input.

import { Plugin, t } from "mortise";

const plugin = new Plugin("bench.echo", { version: "1.0.0" });

plugin.tool("echo", { description: "Answers its input.", input: t.any(), output: t.any() }, (input) => input);

plugin.run();
