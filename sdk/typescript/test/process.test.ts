import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Child, initialize, root } from "./child.ts";

async function started(plugin: string): Promise<Child> {
  const child = new Child(plugin);
  child.send(initialize);
  await child.frame();
  return child;
}

test("prints of every kind go to standard error", async () => {
  const child = await started("odd");
  child.execute(2, "prints", {});
  assert.deepEqual((await child.frame()).result, { status: "succeeded", data: true });
  assert.equal(await child.end(), 0);
  for (const text of ["printed while loading", "written while loading", "info", "debug", "│ a", "write"]) {
    assert.ok(child.stderr.includes(text), `${text} in ${child.stderr}`);
  }
});

// Through a shell, because Node gives its children sockets where the host gives pipes.
test("raw writes and children's prints go to standard error", { skip: !existsSync("/proc/self/fd") }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mortise-"));
  try {
    const execute = '{"jsonrpc":"2.0","id":2,"method":"execute","params":{"call":"c","operation":"x/prints_raw","input":{},"context":{}}}';
    const command = `"${process.execPath}" "${root}build/plugins/odd.mjs" 2>"${folder}/stderr" | cat`;
    const lines = execFileSync("sh", ["-c", command], { input: `${initialize}\n${execute}\n`, encoding: "utf8" }).trim().split("\n");
    assert.deepEqual(lines.slice(1), ['{"jsonrpc":"2.0","id":2,"result":{"status":"succeeded","data":true}}']);
    const stderr = readFileSync(`${folder}/stderr`, "utf8");
    assert.match(stderr, /a raw write\na child's print\n/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a promise that is not awaited does no harm", async () => {
  const child = await started("odd");
  child.execute(2, "forgets", {});
  assert.equal((await child.frame()).id, 2);
  child.execute(3, "echo", { value: 1 });
  assert.equal((await child.frame()).id, 3);
  assert.equal(await child.end(), 0);
  assert.match(child.stderr, /not awaited.*I am not awaited/);
});

test("what is thrown is named after its class and cut", async () => {
  const child = await started("odd");
  const thrown: [string, string, RegExp][] = [
    ["class", "Boom", /^boom$/],
    ["text", "Error", /^just text$/],
    ["odd", "Error", /no text/],
    ["long", "TypeError", /^é{1024}$/],
  ];
  for (const [what, code, message] of thrown) {
    child.execute(2, "throws", { what });
    const { error } = await child.frame();
    assert.equal(error?.data?.["code"], "plugin_error");
    assert.equal(error?.data?.["plugin_code"], code);
    assert.match(error?.message ?? "", message);
  }
  assert.equal(await child.end(), 0);
  assert.match(child.stderr, /Boom|boom\n +at /);
});

test("every value that a handler returns has an answer", async () => {
  const child = await started("odd");
  const answers: [string, unknown][] = [
    ["nothing", null],
    ["nan", "INVALID_RESULT"],
    ["infinity", "INVALID_RESULT"],
    ["cycle", "INVALID_RESULT"],
    ["deep", "INVALID_RESULT"],
    ["surrogate", "INVALID_RESULT"],
    ["surrogateKey", "INVALID_RESULT"],
    ["escapedText", "\\ud800 is only text"],
    ["wide", Array.from({ length: 100 }, () => [{}])],
    ["bigint", { n: 2n ** 70n, list: [-5] }],
    ["date", "1970-01-01T00:00:00.000Z"],
    ["long", "limit_exceeded"],
    ["holes", { b: [null], c: null }],
    ["result", [1]],
    ["thenable", { then: 1 }],
    ["unheard of", null],
  ];
  for (const [what, want] of answers) {
    child.execute(2, "returns", { what });
    const { result, error } = await child.frame();
    if (error) assert.equal(error.data?.["plugin_code"] || error.data?.["code"], want, what);
    else assert.deepEqual(result?.["data"], want, what);
  }
  assert.equal(await child.end(), 0);
});

test("frames of megabytes come whole, in any slices", async () => {
  const child = await started("odd");
  const value = "Grüße, 日本 🦉 \n".repeat(100_000);
  child.execute(2, "echo", { value });
  assert.equal((await child.frame()).result?.["data"], value);
  const line = Buffer.from(JSON.stringify({ id: 3, method: "execute", params: { call: "c", operation: "x/echo", input: { value: "é🦉" } } }) + "\n");
  for (const byte of line) child.process.stdin.write(Buffer.of(byte));
  assert.equal((await child.frame()).result?.["data"], "é🦉");
  assert.equal(await child.end(), 0);
});

test("a line over the limit ends the process", async () => {
  const child = await started("odd");
  child.send("x".repeat((4 << 20) + 1));
  assert.equal(await child.exited, 1);
  assert.match(child.stderr, /more than 4194304 bytes/);
});

test("what is no JSON ends the process", async () => {
  const child = await started("odd");
  child.send("{");
  assert.equal(await child.exited, 1);
});

test("calls run side by side and answer as they end", async () => {
  const child = await started("odd");
  child.execute(2, "later", { value: "slow", ms: 80 });
  child.execute(3, "later", { value: "quick", ms: 5 });
  child.execute(4, "echo", { value: "now" });
  const order = [await child.frame(), await child.frame(), await child.frame()];
  assert.deepEqual(order.map(({ result }) => result?.["data"]), ["now", "quick", "slow"]);
  assert.equal(await child.end(), 0);
});

test("a shutdown cancels what runs, then answers and exits", async () => {
  const child = await started("odd");
  child.execute(2, "waits", {});
  assert.equal((await child.frame()).method, "emit");
  assert.equal((await child.frame()).method, "slow.thing");
  child.send('{"jsonrpc":"2.0","id":3,"method":"shutdown","params":{"deadline_ms":2000}}');
  assert.equal((await child.frame()).error?.data?.["code"], "cancelled");
  assert.deepEqual((await child.frame()).result, {});
  assert.equal(await child.exited, 0);
});

test("a last line without its newline is answered", async () => {
  const child = new Child("odd");
  child.process.stdin.end(initialize);
  assert.equal((await child.frame()).id, 1);
  assert.equal(await child.exited, 0);
});

test("no input at all is no error", async () => {
  assert.equal(await new Child("odd").end(), 0);
});

test("SIGINT is ignored, SIGTERM ends the process", async () => {
  const child = await started("odd");
  child.process.kill("SIGINT");
  child.execute(2, "echo", { value: 1 });
  assert.equal((await child.frame()).id, 2);
  child.process.kill("SIGTERM");
  assert.equal(await child.exited, null);
});

test("a plugin that forgets run() is told so", async () => {
  const child = new Child("idle");
  assert.equal(await child.exited, 1);
  assert.match(child.stderr, /never called run\(\)/);
});

const version1: [string, string, unknown][] = [
  ["an exception", '"tool_name":"throws","input":{"what":"class"}', { status: "error", error: { code: "Boom", message: "boom" } }],
  ["an unknown tool", '"tool_name":"no","input":{}', { status: "error", error: { code: "tool_not_exposed", message: "test.odd has no tool no" } }],
  ["a missing argument", '"tool_name":"echo","input":{}', { status: "error", error: { code: "invalid_input", message: "value is missing" } }],
  ["a promise", '"tool_name":"later","input":{"value":9007199254740993,"ms":20}', { status: "ok", output: 9007199254740993n, metadata: {} }],
  ["a result", '"tool_name":"returns","input":{"what":"result"}', { status: "ok", output: [1], metadata: {} }],
];

for (const [name, request, want] of version1) {
  test(`version 1 answers ${name}`, async () => {
    const child = new Child("odd");
    child.send('{"type":"handshake","protocol_version":"1"}');
    // No newline, and the input ends at once: the answer is awaited all the same.
    child.process.stdin.end(`{"type":"request","request_id":"r1","context":{},${request}}`);
    const { manifest } = (await child.frame()) as { manifest?: { protocol_version: string } };
    assert.equal(manifest?.protocol_version, "1");
    assert.deepEqual(await child.frame(), { type: "response", request_id: "r1", ...(want as object) });
    assert.equal(await child.exited, 0);
  });
}

test("the plugin in README.md counts words", async () => {
  const source = readFileSync(`${root}test/plugins/word_count.ts`, "utf8");
  assert.ok(readFileSync(`${root}README.md`, "utf8").includes(`\`\`\`ts\n${source}\`\`\`\n`));
  const child = await started("word_count");
  child.execute(2, "word_count", { text: "to be " });
  assert.deepEqual((await child.frame()).result, { status: "succeeded", data: 2 });
  assert.equal(await child.end(), 0);
});
