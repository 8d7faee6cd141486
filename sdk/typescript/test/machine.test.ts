import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import os from "node:os";
import { test } from "node:test";
import { initialize, root } from "./child.ts";

interface Machine {
  early: number;
  cpus: os.CpuInfo[][];
  networks: object[];
}

/** What a plugin is told in a process where a module came first. */
function machine(first: string): Machine {
  const params = { call: "c", operation: "x/machine", input: {}, context: {} };
  const input = `${initialize}\n${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "execute", params })}\n`;
  const argv = ["--import", `data:text/javascript,${encodeURIComponent(first)}`, `${root}build/plugins/machine.mjs`];
  const [, answer = ""] = execFileSync(process.execPath, argv, { input, encoding: "utf8" }).split("\n");
  return (JSON.parse(answer) as { result: { data: Machine } }).result.data;
}

test("where processors and networks are hidden, there are as many and none", () => {
  const told = machine(`
    import os from "node:os";
    import { syncBuiltinESMExports } from "node:module";
    os.cpus = () => [];
    os.networkInterfaces = () => { throw new Error("Unknown system error 1"); };
    syncBuiltinESMExports();`);
  const count = os.availableParallelism();
  const one = { model: "", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } };
  assert.equal(told.early, count);
  assert.deepEqual(told.cpus, Array(5).fill(Array(count).fill(one)));
  assert.deepEqual(told.networks, Array(5).fill({}));
});

test("elsewhere they are what they are", () => {
  const told = machine("");
  for (const cpus of told.cpus) assert.deepEqual(cpus.map(({ model }) => model), os.cpus().map(({ model }) => model));
  for (const networks of told.networks) assert.deepEqual(Object.keys(networks), Object.keys(os.networkInterfaces()));
});
