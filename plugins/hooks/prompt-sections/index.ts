// Adds sections to the prompt: the day, those of sections.json, and what the agent
// remembers under prompt/... . A section that is there already is left alone.
import fixed from "./sections.json";

export function register(ctx): void {
  ctx.bus.on("prompt.assemble@v1", async (e) => {
    const sections = [...e.sections];
    const add = (key: string, content: string) => {
      if (content && !sections.some((s) => s.key === key)) sections.push({ key, content });
    };
    add("date", `Today is ${e.at.slice(0, 10)}.`);
    for (const [key, content] of Object.entries(fixed)) add(key, content);
    for (const found of await ctx.memory.search("prompt", 5)) {
      if (found.key.startsWith("prompt/")) add(found.key.slice("prompt/".length), found.content);
    }
    return { ...e, sections };
  }, { priority: 90 });
}
