// A hostile plugin in JavaScript: what goes wrong in Node in a way of its own.
//
// It uses no SDK. The session's name says what it does: "exits|9" is the
// behaviour exits with the parameter 9. Started with "list" it prints their
// names.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import { Worker } from "node:worker_threads";

const write = (text) => { // all of it, however full the pipe is
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest));
    } catch (err) {
      if (err.code !== "EAGAIN") throw err;
    }
  }
};
const result = (data) => `{"jsonrpc":"2.0","id":${call.id},"result":{"status":"succeeded","data":${data}}}\n`;
const answer = (data = "1") => write(result(data));
const spin = () => { for (;;); };
const idle = () => setInterval(() => {}, 1 << 30);
const sleeper = ["-e", "process.on('SIGTERM',()=>{});setInterval(()=>{},1<<30)"];
let call;

const behaviours = {
  "good": () => answer(),
  "exits": (n) => process.exit(n),
  "aborts": () => process.abort(),
  "throws": (n) => { throw [new Error("on purpose"), "text", null, undefined, 7, Symbol("s")][n]; },
  "throws later": (n) => setTimeout(() => { throw new Error("later"); }, n),
  "rejects": () => { Promise.reject(new Error("not handled")); },
  "rejects nothing": () => { Promise.reject(undefined); },
  "blocks": spin,
  "microtasks": () => { const again = () => Promise.resolve().then(again); again(); },
  "ticks": () => { const again = () => process.nextTick(again); again(); },
  "immediates": () => { const again = () => setImmediate(again); again(); },
  "waits": () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); },
  "regex": () => { /^(a+)+$/.test("a".repeat(64) + "b"); answer(); },
  "recursion": () => { const down = () => down() + 1; down(); },
  "console": (n) => { console.log(["debug", { a: 1 }, "", [1], undefined][n]); idle(); },
  "surrogate": (n) => answer(JSON.stringify(["\ud800", "\udfff", "a\ud83d"][n])),
  "undefined": (n) => answer(["undefined", "[object Object]", "1n", "NaN", "[,]"][n]),
  "deep": (n) => answer("[".repeat(n) + "]".repeat(n)),
  "writes and exits": (n) => { process.stdout.write(result(`"${"w".repeat(n)}"`)); process.exit(0); },
  "writes in the dark": () => { process.stdout.destroy(); idle(); },
  "stops": () => { process.kill(process.pid, "SIGSTOP"); },
  "deaf": () => { for (const name of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(name, () => {}); answer(); idle(); },
  "keeps talking": (n) => { answer(); setInterval(() => write('{"jsonrpc":"2.0","method":"log","params":{"level":"info","message":"on"}}\n'), n); },
  "late": (n) => setTimeout(answer, n),
  "late and stray": (n) => { answer(); setTimeout(() => write("stray\n"), n); },
  "timers": (n) => { for (let i = 0; i < n; i++) setInterval(() => {}, 0); answer(); },
  "detached": () => { spawn(process.execPath, sleeper, { detached: true, stdio: "ignore" }).unref(); answer(); },
  "holds pipes": () => { spawn(process.execPath, sleeper, { detached: true, stdio: "inherit" }).unref(); process.exit(0); },
  "a child speaks": () => { spawnSync(process.execPath, ["-e", "console.log('hello from below')"], { stdio: "inherit" }); idle(); },
  "worker speaks": () => { new Worker("console.log('hello from a thread')", { eval: true }); idle(); },
  "workers spin": (n) => { for (let i = 0; i < n; i++) new Worker("for(;;);", { eval: true }); idle(); },
  "sync output": (n) => { write("x".repeat(n << 20)); idle(); },
  "exits before it began": () => { process.exitCode = 3; process.stdin.destroy(); },
  "unref": () => { process.stdin.unref?.(); process.stdin.pause(); },
  "heap bomb": () => { const held = []; for (;;) held.push(new Array(1e5).fill(held.length)); },
  "buffer bomb": () => { const held = []; for (;;) held.push(Buffer.alloc(1 << 20, 1)); },
  "string bomb": () => { let text = "x"; for (;;) text += text; },
  "worker bomb": () => { for (let i = 0; i < 2000; i++) new Worker("setInterval(()=>{},1<<30)", { eval: true }).on("error", () => {}); idle(); },
  "connects": (n) => {
    const socket = net.connect([{ port: 22, host: "127.0.0.1" }, { path: "/run/docker.sock" }, { path: "\0abstract" }][n], () => process.exit(98));
    socket.on("error", (err) => answer(JSON.stringify(err.code)));
  },
  "changes its file": () => {
    try {
      fs.appendFileSync(process.argv[1], "// changed\n");
    } catch (err) {
      return answer(JSON.stringify(err.code));
    }
    process.exit(98);
  },
};

if (process.argv[2] === "list") {
  console.log(Object.keys(behaviours).sort().join("\n"));
  process.exit(0);
}

let text = "", chosen, parameter;
process.stdin.on("end", () => process.exit(0));
process.stdin.on("data", (chunk) => {
  text += chunk;
  for (let end; (end = text.indexOf("\n")) >= 0;) {
    const message = JSON.parse(text.slice(0, end));
    text = text.slice(end + 1);
    if (message.method === "initialize") {
      [chosen, parameter] = message.params.scope.id.replace(/^\d+~/, "").split("|");
      write(`{"jsonrpc":"2.0","id":${message.id},"result":{"protocol":"2","plugins":[{"name":"hostile.node","version":"1.0.0"}],"concurrency":4}}\n`);
    } else if (message.method === "describe") {
      write(`{"jsonrpc":"2.0","id":${message.id},"error":{"code":-32601,"message":"no such method"}}\n`);
    } else if (message.method === "shutdown") {
      write(`{"jsonrpc":"2.0","id":${message.id},"result":{}}\n`);
    } else if (message.method === "execute" && !behaviours[chosen]) {
      console.error("there is no behaviour", chosen);
      process.exit(99);
    } else if (message.method === "execute" && call) {
      call = message;
      answer();
    } else if (message.method === "execute") {
      call = message;
      behaviours[chosen](Number(parameter ?? 0));
    }
  }
});
