// A plugin that asks about its machine in every way there is.

import { createRequire } from "node:module";
import os, * as all from "node:os";
import { cpus, networkInterfaces } from "node:os";
import { Plugin } from "mortise";

const early = os.cpus().length;

new Plugin("test.machine", { version: "0.1.0", concurrency: 1 })
  .tool("machine", {}, async () => {
    const ways = [os, all, { cpus, networkInterfaces }, createRequire(import.meta.url)("os") as typeof os, await import("node:os")];
    return { early, cpus: ways.map((way) => way.cpus()), networks: ways.map((way) => way.networkInterfaces()) };
  })
  .run();
