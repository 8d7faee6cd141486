package script

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// A plugin as an author writes it, with types.
const typedPlugin = `import type { Context } from "./mortise-hooks";

export function register(ctx: Context): void {
  ctx.bus.on("tool.before@v1", async (e) => {
    if (e.toolName !== "shell") return { allow: true };
    return { allow: true, payload: { ...e, args: { ...e.args, safe: true } } };
  }, { priority: 10, failureMode: "fail" });
  ctx.bus.on("prompt.assemble@v1", (e) => ({ ...e, sections: [...e.sections, { key: "mine", content: "Be kind." }] }));
  const off = ctx.bus.on("tool.after@v1", (e) => { console.log(e.ok ? "ok" : e.error ?? "?", e.durationMs + 1); });
  off();
  ctx.tools.add<{ a: number }>({ name: "twice", schema: { type: "object" }, handler: ({ a }) => a * 2 });
}
`

func TestDefinitionsNameEveryEvent(t *testing.T) {
	text := Definitions()
	for _, e := range event.Catalogue {
		for _, part := range []string{"export interface " + payloadType(e.Name) + " {", "  \"" + e.Name + "\": "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s is missing", part)
			}
		}
	}
}

func TestATypedPluginRuns(t *testing.T) {
	s := opened(t, typedPlugin, Environment{}).Subscriptions() // the import of types is no import
	p, err := s[1].Transform(context.Background(), payload(t, `{"sections":[]}`))
	if err != nil || p.Text() != `{"sections":[{"key":"mine","content":"Be kind."}]}` {
		t.Errorf("got %v, %v", p, err)
	}
}

// TestDefinitionsCheck has the compiler of the SDK's tests read them, if it is
// installed: what is right passes, and mistakes do not.
func TestDefinitionsCheck(t *testing.T) {
	tsc, err := filepath.Abs("../../../sdk/typescript/node_modules/.bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tsc); err != nil {
		t.Skip("needs TypeScript: run npm ci in sdk/typescript")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs node: install Node.js")
	}
	check := func(source string) string {
		dir := t.TempDir()
		write(t, dir, "mortise-hooks.d.ts", Definitions())
		write(t, dir, "index.ts", source)
		write(t, dir, "tsconfig.json", `{"compilerOptions": {"noEmit": true, "strict": true, "target": "es2023", "lib": ["es2023"],
			"module": "esnext", "moduleResolution": "bundler", "types": []}, "files": ["index.ts"]}`)
		cmd := exec.Command(tsc)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // what it says is looked at
		return string(out)
	}
	if out := check(typedPlugin); out != "" {
		t.Errorf("tsc says\n%s", out)
	}
	out := check(strings.NewReplacer(`e.toolName !== "shell"`, `e.toolNam !== "shell"`, `priority: 10`, `priority: "10"`, `{ ...e, sections:`, `{ section:`).Replace(typedPlugin))
	for _, says := range []string{"'toolNam' does not exist", "not assignable to type 'number'", "index.ts(8,"} {
		if !strings.Contains(out, says) {
			t.Errorf("tsc does not say %q:\n%s", says, out)
		}
	}
}
