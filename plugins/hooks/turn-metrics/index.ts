// Counts what an agent does. The figures are logged with each answer of the model
// and answered by the tool figures; they are of this agent, and since it started.

export function register(ctx): void {
  const figures = { turns: 0, models: 0, modelMs: 0, modelFailures: 0, tools: 0, toolMs: 0, toolFailures: 0, memories: 0, pluginErrors: 0 };
  const slowest: { tool: string; ms: number }[] = [];

  ctx.bus.on("session.message.received@v1", () => {
    figures.turns++;
  }, { priority: 1000 });

  ctx.bus.on("model.after@v1", (e) => {
    figures.models++;
    figures.modelMs += e.durationMs;
    if (!e.ok) figures.modelFailures++;
    ctx.logger.info("the model answered", { session: e.sessionId, turn: e.turnIndex, ms: e.durationMs, ok: e.ok });
  });

  ctx.bus.on("tool.after@v1", (e) => {
    figures.tools++;
    figures.toolMs += e.durationMs;
    if (!e.ok) figures.toolFailures++;
    slowest.push({ tool: e.toolName, ms: e.durationMs });
    slowest.sort((a, b) => b.ms - a.ms);
    slowest.length = Math.min(slowest.length, 5);
  });

  ctx.bus.on("memory.upsert@v1", () => {
    figures.memories++;
  });

  ctx.bus.on("plugin.error@v1", (e) => {
    figures.pluginErrors++;
    ctx.logger.warn("a plugin failed", { plugin: e.pluginId, event: e.event, message: e.message });
  });

  ctx.tools.add({
    name: "figures",
    description: "What this agent did since it started: turns, model calls, uses of tools, their times and failures.",
    schema: { type: "object", properties: {}, additionalProperties: false },
    handler: () => ({ ...figures, slowest }),
  });
}
