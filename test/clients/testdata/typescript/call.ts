// Executes one operation with the types that openapi-typescript writes.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [server, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: server, headers: { Authorization: `Bearer ${token}` } });
const path = "/api/v1/operations/{plugin}/{operation}:execute";

const done = await client.POST(path, {
  params: { path: { plugin: "desk", operation: "upper" }, header: { "Idempotency-Key": "ts-1" } },
  body: { input: { text: "from typescript" } },
});
if (!done.data) throw new Error(JSON.stringify(done.error));
const refused = await client.POST(path, { params: { path: { plugin: "desk", operation: "absent" } }, body: {} });
if (!refused.error) throw new Error("what there is not is executed");
const outcome = done.data;
if (typeof outcome === "string") throw new Error("a stream was not asked for"); // it is text/event-stream
console.log(outcome.status, JSON.stringify(outcome.data), refused.error.code);
