// Lets an agent use the tools of allowed.json and no others. A name may end in *.
// Under "arguments" a tool's arguments may be held to a pattern each.
//
// It says nothing of skipping, so where it fails on a call that has effects the
// call is refused.
import rules from "./allowed.json";

function matches(name: string, rule: string): boolean {
  const parts = rule.split("*");
  if (parts.length === 1) return name === rule;
  let at = 0;
  for (let i = 0; i < parts.length; i++) {
    const found = i === 0 ? (name.startsWith(parts[0]) ? 0 : -1) : name.indexOf(parts[i], at);
    if (found < 0) return false;
    at = found + parts[i].length;
  }
  return parts[parts.length - 1] === "" || name.endsWith(parts[parts.length - 1]);
}

export function register(ctx): void {
  const bounds = Object.entries(rules.arguments as Record<string, Record<string, string>>).map(
    ([tool, args]) => [tool, Object.entries(args).map(([name, text]) => [name, new RegExp(text)])] as [string, [string, RegExp][]],
  );

  ctx.bus.on("tool.before@v1", (e) => {
    const tool = e.toolName;
    if (!rules.tools.some((rule) => matches(tool, rule)) && !bounds.some(([name]) => name === tool)) {
      return { allow: false, reason: `${tool} is not on the list` };
    }
    for (const [name, args] of bounds) {
      if (name !== tool) continue;
      for (const [arg, pattern] of args) {
        if (!pattern.test(String(e.args[arg] ?? ""))) {
          return { allow: false, reason: `${arg} of ${tool} is not what the list allows` };
        }
      }
    }
    return { allow: true };
  }, { priority: 20 });
}
