// What an official client does with a call that waits for a person, and with one that it cancels:
// node wait.mjs CASE CLIENT SERVER TOKEN [PROGRAM].
//
// CLIENT is 2026-07-28 or 2025-11-25 for the second client with that revision, or first for the
// first client, which ends at 2025-11-25. The program that started this one has the host at hand. It
// answers each line on standard output with one on standard input: "approve ID" when another person
// has approved ID, and "recorded OPERATION" with what the ledger has of the call, once it has ended.
// The last line of a case that did what it should is "done".
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [name, which, server, token, program] = process.argv.slice(2);
const newest = "2026-07-28";
const tasks = "io.modelcontextprotocol/tasks";
const address = new URL(server + "/mcp?list=all");
const requestInit = { headers: { Authorization: `Bearer ${token}` } };

// connect returns a client that declares these capabilities. Its call has the same form for both.
async function connect(capabilities, elicit, transport = new StreamableHTTPClientTransport(address, { requestInit })) {
  const me = { name: "test", version: "1" };
  if (which === "first") {
    const client = new FirstClient(me, { capabilities });
    const http = new FirstTransport(address, { requestInit });
    await client.connect(http);
    assert.equal(http.protocolVersion, "2025-11-25");
    client.call = (tool, args, options) => client.callTool({ name: tool, arguments: args }, undefined, options);
    return client;
  }
  const mode = which === newest ? { pin: which } : "legacy";
  const client = new Client(me, { capabilities, versionNegotiation: { mode } });
  if (elicit) client.setRequestHandler("elicitation/create", ({ params }) => elicit(params));
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion(), which);
  client.call = (tool, args, options) => client.callTool({ name: tool, arguments: args }, options);
  return client;
}

const said = (result) => result.content.map((block) => block.text).join("\n");
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function say(line) {
  console.log(line);
  const { value } = await input.next();
  return value;
}

// approve has the person approve. page is the address on which they would.
async function approve(page) {
  assert.ok(page.startsWith(server + "/decide/"), page);
  const shown = await fetch(page);
  assert.deepEqual([shown.status, shown.headers.get("content-type").split(";")[0]], [200, "text/html"]);
  assert.equal(await say("approve " + page.slice(page.lastIndexOf("/") + 1)), "approved");
}

// lists, calls, and is told what is wrong.
async function use(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["desk.gated", "desk.stay", "desk.upper", "mortise.call_result"]);
  const right = await client.call("desk.upper", { text: "a" });
  assert.deepEqual([right.isError ?? false, right.structuredContent], [false, { text: "A" }]);
  const wrong = await client.call("desk.upper", { text: 7 });
  assert.deepEqual([wrong.isError, wrong._meta["dev.mortise/error"].code], [true, "invalid_input"]);
  assert.match(said(wrong), /^invalid_input: .*\/text/);
  await assert.rejects(client.call("desk.absent", {}), { code: -32602, message: /unknown tool/ });
}

const cases = {
  async use() {
    const client = await connect({});
    await use(client);
    return client;
  },

  async "use over stdio"() {
    const client = await connect({}, undefined, streams());
    await use(client);
    return client;
  },

  // A caller that may confirm its own call is shown a form with the exact arguments.
  async accept() {
    const shown = [];
    const client = await connect({ elicitation: { form: {} } }, (params) => {
      shown.push(params);
      return { action: "accept", content: { approve: true } };
    });
    const result = await client.call("desk.gated", { text: "accepted" });
    assert.deepEqual([result.isError ?? false, result.structuredContent], [false, { wrote: "accepted" }]);
    assert.equal(shown.length, 1);
    assert.equal(shown[0].mode ?? "form", "form");
    assert.match(shown[0].message, /desk\/gated[^]*it is gated[^]*db_write[^]*text = "accepted"/);
    assert.deepEqual(shown[0].requestedSchema.required, ["approve"]);
    return client;
  },

  async decline() {
    const client = await connect({ elicitation: { form: {} } }, () => ({ action: "decline" }));
    const result = await client.call("desk.gated", { text: "declined" });
    assert.deepEqual([result.isError, result._meta["dev.mortise/error"].code], [true, "approval_denied"]);
    assert.match(said(result), /^approval_denied: /);
    return client;
  },

  // The page is for another person, whose approval on the host decides.
  async page() {
    const shown = [];
    const client = await connect({ elicitation: { url: {} } }, async (params) => {
      shown.push(params);
      await approve(params.url);
      return { action: "accept" };
    });
    const result = await client.call("desk.gated", { text: "page" });
    assert.deepEqual([result.isError ?? false, result.structuredContent], [false, { wrote: "page" }]);
    assert.deepEqual(shown.map((params) => params.mode), ["url"]);
    return client;
  },

  // The client declares the extension, sends tasks/get and tasks/cancel with a schema that is given
  // to it, and names the task in Mcp-Name. Of tools/call it knows no result but complete and
  // input_required: a task is UNSUPPORTED_RESULT_TYPE, without its id. So the calls are sent again
  // with fetch, which joins them to those that the client began.
  async task() {
    const client = await connect({ extensions: { [tasks]: {} } });
    const begun = async (text) => {
      const params = { name: "desk.gated", arguments: { text } };
      await assert.rejects(client.callTool(params), { code: "UNSUPPORTED_RESULT_TYPE", data: { resultType: "task", method: "tools/call" } });
      return ask("tools/call", params.name, params);
    };
    const any = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
    const of = (method, { taskId }) => client.request({ method, params: { taskId } }, any);

    const task = await begun("task");
    assert.deepEqual([task.resultType, task.status], ["task", "working"]);
    assert.equal((await of("tasks/get", task)).status, "working");
    await approve(task.statusMessage.split(" ").at(-1));
    let now = await of("tasks/get", task);
    for (let i = 0; now.status === "working" && i < 20; i++) now = await of("tasks/get", task); // each waits for up to a second
    assert.deepEqual([now.status, now.result?.structuredContent], ["completed", { wrote: "task" }]);

    const other = await begun("cancelled");
    await of("tasks/cancel", other);
    assert.equal((await of("tasks/get", other)).status, "cancelled");
    return client;
  },

  // A client that declares nothing, or one of an earlier revision whatever it declares, asks for the
  // outcome. A repeated call is the same call.
  async pending() {
    const client = await connect(which === newest ? {} : { elicitation: { form: {}, url: {} } });
    const outcome = (call_id, wait_seconds) => client.call("mortise.call_result", { call_id, wait_seconds });
    const { isError, structuredContent: pending } = await client.call("desk.gated", { text: "pending" });
    assert.deepEqual([isError ?? false, pending.status], [false, "pending_approval"]);
    const { structuredContent: again } = await client.call("desk.gated", { text: "pending" });
    assert.equal(again.call_id, pending.call_id);
    assert.equal((await outcome(pending.call_id, 0)).structuredContent.status, "pending_approval");
    await approve(pending.url);
    const result = await outcome(pending.call_id, 30);
    assert.deepEqual([result.isError ?? false, result.structuredContent], [false, { wrote: "pending" }]);
    return client;
  },

  // A client of the newest revision ends the request that it cancels. One of an earlier revision sends
  // notifications/cancelled, a request of its own, and the host keeps nothing between two requests by
  // which it would know the other. There the call ends when the client is gone.
  async cancel() {
    const client = await connect({});
    await stop(client);
    if (which !== newest) await client.close();
    await cancelled();
    return client;
  },

  // Over standard streams, notifications/cancelled is about a request on the same connection.
  async "cancel over stdio"() {
    const client = await connect({}, undefined, streams());
    await stop(client);
    await cancelled();
    return client;
  },
};

// stop cancels a call that runs, once the plugin has said that it has begun.
async function stop(client) {
  const abort = new AbortController();
  const onprogress = ({ message }) => message === "it has begun" && abort.abort("not any more");
  await assert.rejects(client.call("desk.stay", {}, { signal: abort.signal, onprogress }), /not any more/);
}

async function cancelled() {
  assert.equal(await say("recorded desk/stay"), "call.failed cancelled mcp");
}

// streams starts the program that answers on its standard streams.
function streams() {
  const env = { ...process.env, MORTISE_SERVER: server, MORTISE_TOKEN: token };
  return new StdioClientTransport({ command: program, args: ["mcp", "--list", "all"], env });
}

// ask sends one request of the newest revision from a client that takes tasks.
async function ask(method, named, params) {
  const meta = "io.modelcontextprotocol/";
  const _meta = {
    [meta + "protocolVersion"]: newest,
    [meta + "clientInfo"]: { name: "test", version: "1" },
    [meta + "clientCapabilities"]: { extensions: { [tasks]: {} } },
  };
  const response = await fetch(address, {
    method: "POST",
    headers: {
      ...requestInit.headers,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": newest,
      "Mcp-Method": method,
      "Mcp-Name": named,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
  });
  const text = await response.text();
  const answer = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  assert.equal(answer.error, undefined, text);
  return answer.result;
}

const client = await cases[name]();
await client.close();
console.log("done");
process.exit(); // standard input is still open
