// A plugin that wants to hear of an event that there is not.

import { Plugin } from "mortise";

new Plugin("mishears", { version: "1.0.0" }).hook("tool.before" as "tool.after@v1", {}, () => {}).run();
