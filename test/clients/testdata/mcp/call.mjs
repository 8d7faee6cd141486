// Lists and calls a tool with the official client, over HTTP or over standard streams:
// node call.mjs http SERVER TOKEN, node call.mjs stdio PROGRAM SERVER TOKEN.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [way, ...given] = process.argv.slice(2);
const transport = way === "http"
  ? new StreamableHTTPClientTransport(new URL(given[0] + "/mcp?list=all"), { requestInit: { headers: { Authorization: `Bearer ${given[1]}` } } })
  : new StdioClientTransport({ command: given[0], args: ["mcp", "--list", "all"], env: { ...process.env, MORTISE_SERVER: given[1], MORTISE_TOKEN: given[2] } });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const answer = await client.callTool({ name: "desk.upper", arguments: { text: "from typescript" } });
const wrong = await client.callTool({ name: "desk.upper", arguments: {} });
const absent = await client.callTool({ name: "desk.absent", arguments: {} }).catch((e) => e.code);
console.log(tools.some((t) => t.name === "desk.upper"), JSON.stringify(answer.structuredContent), wrong.isError, absent);
await client.close();
