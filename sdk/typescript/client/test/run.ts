// Starts a host, and runs the tests with it: all of them, and those of the AI SDK with its version 6 too.

import { spawn } from "node:child_process";
import { startHost } from "./host.ts";

const host = await startHost();
const env = { ...process.env, TEST_HOST: JSON.stringify(host) };

/** One file after another, because tests count the calls that the host has. */
const run = (...args: string[]): Promise<boolean> =>
  new Promise((done) => {
    const child = spawn(process.execPath, ["--test-concurrency=1", "--test-timeout=300000", ...args], { env, stdio: "inherit" });
    child.once("exit", (status) => done(status === 0));
  });

const tests = "build/client/test";
const all = await run("--test", `${tests}/client.test.js`, `${tests}/vercel.test.js`, `${tests}/openai-agents.test.js`, `${tests}/guide.test.js`);
const six = await run("--import", "./test/ai-6.mjs", "--test", `${tests}/vercel.test.js`);
await host.stop();
process.exitCode = all && six ? 0 : 1;
