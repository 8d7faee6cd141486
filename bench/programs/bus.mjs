// The same bus in Node, nothing contained: handlers by priority, each awaited,
// one that throws passed over. Each line of standard input is a run and how often;
// the answer is the nanoseconds of one event.
import { createInterface } from "node:readline";

const payload = JSON.parse(process.argv[2]);

function bus(handlers) {
  const sorted = handlers.map((handler, n) => ({ handler, priority: 100, n })).sort((a, b) => a.priority - b.priority || a.n - b.n);
  return {
    async veto(p) {
      for (const { handler } of sorted) {
        try {
          const said = await handler(p);
          if (!said.allow) return said;
          if (said.payload) p = said.payload;
        } catch (error) {
          console.error(error);
        }
      }
      return { allow: true, payload: p };
    },
    async transform(p) {
      for (const { handler } of sorted) {
        try {
          const next = await handler(p);
          if (next !== undefined) p = next;
        } catch (error) {
          console.error(error);
        }
      }
      return p;
    },
  };
}

const veto = (e) => ({ allow: e.property_a !== "x" && e.property_k !== "y" && e.property_t !== "z" });
const patch = (e) => ({ ...e, property_b: e.property_b + "!" });
const one = bus([veto]), ten = bus(Array(10).fill(veto)), other = bus([patch]);
const runs = {
  veto: async () => { if (!(await one.veto(payload)).allow) throw new Error("refused"); },
  transform: async () => { if ((await other.transform(payload)).property_b === payload.property_b) throw new Error("unchanged"); },
  ten: async () => { if (!(await ten.veto(payload)).allow) throw new Error("refused"); },
  text: async () => { if (!(await one.veto(JSON.parse(process.argv[2]))).allow) throw new Error("refused"); },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, count] = line.split(" ");
  const begin = process.hrtime.bigint();
  for (let i = 0; i < Number(count); i++) await runs[name]();
  console.log(Number(process.hrtime.bigint() - begin) / Number(count));
}
