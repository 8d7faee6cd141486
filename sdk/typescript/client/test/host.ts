// The host of the tests: policy asks a person about mail/send, refuses mail/secret and lets mail/upper run.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "../src/index.ts";

const plugin = `import { Plugin, t } from "mortise";
const plugin = new Plugin("mail", { version: "1.0.0" });
plugin.operator("send", {
  description: "Send a mail.",
  input: { to: t.string(), text: t.optional(t.string()) },
  output: t.object({ to: t.string(), receipt: t.string() }),
  effects: ["mail_send"],
}, ({ to }) => ({ to, receipt: Math.random().toString(36) }));
plugin.operator("secret", { description: "Not for agents.", input: {}, output: t.string(), effects: ["mail_send"] }, () => "sent");
plugin.tool("upper", { description: "Make a text upper case.", input: { text: t.string() }, output: t.string() }, ({ text }) => text.toUpperCase());
plugin.tool("large", { description: "A number.", input: {}, output: t.json({}) }, () => ({ n: 9007199254740993n }));
plugin.run();
`;

const policy = `@id("mail_waits") @approval("it leaves the house")
permit (principal == User::"bot", action in [Action::"execute", Action::"list"], resource == Operation::"mail/send");
@id("tools")
permit (principal == User::"bot", action in [Action::"execute", Action::"list"], resource) when { ["mail/upper", "mail/large"].contains(resource.name) };
@id("seen")
permit (principal == User::"bot", action == Action::"list", resource == Operation::"mail/secret");
@id("approve")
permit (principal == User::"ann", action == Action::"approve", resource);
`;

export interface Host {
  url: string;
  token: string;
  client: Client;
  approve(approvalId: string): Promise<void>;
  deny(approvalId: string): Promise<void>;
  /** How many calls of an operation the host has on record. */
  calls(operation: string): Promise<number>;
}

/** What test/run.ts passes on to the tests. */
interface Started {
  url: string;
  token: string;
  /** A token of who may approve. */
  person: string;
}

/** The host that test/run.ts has started. */
export function theHost(): Host {
  const { url, token, person } = JSON.parse(process.env["TEST_HOST"] ?? "{}") as Started;
  const ask = async (method: string, route: string, bearer: string): Promise<Record<string, unknown>> => {
    const response = await fetch(`${url}/api/v1/${route}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
      ...(method === "POST" && { body: "{}" }),
    });
    if (!response.ok) throw new Error(`${route}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  return {
    url,
    token,
    client: new Client({ url, token }),
    approve: async (id) => void (await ask("POST", `approvals/${id}:approve`, person)),
    deny: async (id) => void (await ask("POST", `approvals/${id}:deny`, person)),
    calls: async (operation) => ((await ask("GET", `calls?operation=${encodeURIComponent(operation)}&page_size=200`, token))["calls"] as unknown[]).length,
  };
}

export async function startHost(): Promise<Started & { stop(): Promise<void> }> {
  const binary = process.env["MORTISE_TEST_BINARY"] ?? resolve("../../../bin/mortise");
  const home = mkdtempSync(join(tmpdir(), "mortise-client-"));
  writeFileSync(join(home, "mortise.yaml"), `sandbox: best-effort\npolicy: {default: none, files: [mail.cedar], groups: {people: [ann, bot]}}\n`);
  writeFileSync(join(home, "mail.cedar"), policy);
  writeFileSync(join(home, "mail.ts"), plugin);
  const env: NodeJS.ProcessEnv = { ...process.env, HOME: home };
  for (const name of Object.keys(env)) if (name.startsWith("MORTISE_")) delete env[name];
  const mortise = (...args: string[]): string => execFileSync(binary, ["--home", home, ...args], { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  mortise("plugins", "register", "--dev", join(home, "mail.ts"));
  const token = mortise("tokens", "create", "bot", "--for", "bot", "--scope", "run", "--scope", "read");
  const person = mortise("tokens", "create", "ann", "--for", "ann", "--scope", "read", "--scope", "approve");
  const child = spawn(binary, ["--home", home, "serve", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "ignore", "pipe"] });
  process.once("exit", () => child.kill("SIGTERM")); // also where a test gave up
  return {
    url: await listening(child),
    token,
    person,
    async stop() {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      await ended;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((found, failed) => {
    const said: string[] = [];
    child.once("exit", (status) => failed(new Error(`the host ended with status ${status}: ${said.join("\n")}`)));
    if (child.stderr) {
      createInterface({ input: child.stderr }).on("line", (line) => {
        said.push(line);
        const address = /listening on (\S+)/.exec(line)?.[1];
        if (address) found(address);
      });
    }
  });
}
