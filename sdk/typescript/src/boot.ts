// Imported before a plugin's entry file, so that nothing the entry or its
// imports print can end up among the frames of the protocol, and that they find
// the machine described in a cage too.

import { isatty } from "node:tty";
import { describeMachine } from "./machine.ts";
import { isServing } from "./serve.ts";
import { claimStdout } from "./stdio.ts";

if (!isatty(0)) claimStdout();
describeMachine();

process.on("beforeExit", () => {
  if (isServing()) return;
  process.stderr.write("the plugin never called run(): end its entry file with plugin.run()\n");
  process.exit(1);
});
