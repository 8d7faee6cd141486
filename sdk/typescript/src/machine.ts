// What Node tells a plugin of its machine. In a cage there is less to be found
// than programs expect: no list of processors, and no sockets to ask about networks.

import { syncBuiltinESMExports } from "node:module";
import os, { type CpuInfo } from "node:os";

const unknown = (): CpuInfo => ({ model: "", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } });

/**
 * Lets os.cpus() list as many processors as may be used where it would list
 * none, and os.networkInterfaces() none where it would throw, however the
 * plugin's code comes by them. Neither is asked before the plugin asks.
 */
export function describeMachine(): void {
  const { cpus, networkInterfaces } = os;
  Object.assign(os, {
    cpus() {
      const known = cpus();
      return known.length > 0 ? known : Array.from({ length: os.availableParallelism() }, unknown);
    },
    networkInterfaces() {
      try {
        return networkInterfaces();
      } catch {
        return {};
      }
    },
  } satisfies Partial<typeof os>);
  syncBuiltinESMExports(); // for import { cpus }
}
