package script

import (
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// Definitions returns mortise-hooks.d.ts: the types of ctx and of every event of
// the catalogue, for authors of plugins and their editors.
func Definitions() string {
	var b strings.Builder
	b.WriteString(definitionsHead)
	writePayloads(&b)
	b.WriteString("\n/** The handlers of each event. */\nexport interface Handlers {\n")
	for _, e := range event.Catalogue {
		fmt.Fprintf(&b, "  %q: %s<%s>;\n", e.Name, handlerTypes[e.Shape], payloadType(e.Name))
	}
	b.WriteString("}\n")
	return b.String()
}

// elementKinds returns the arrays with members of all events, each kind once, with
// what its elements have.
func elementKinds() (kinds []event.Field) {
	seen := map[string]bool{}
	var add func(fields []event.Field)
	add = func(fields []event.Field) {
		for _, f := range fields {
			if f.Of == "" || seen[f.Of] {
				continue
			}
			seen[f.Of] = true
			add(f.Members)
			kinds = append(kinds, f)
		}
	}
	for _, e := range event.Catalogue {
		add(e.Fields)
	}
	return kinds
}

// writePayloads writes an interface for what each event carries.
func writePayloads(b *strings.Builder) {
	for _, kind := range elementKinds() {
		fmt.Fprintf(b, "\n/** One of %s: %s */\nexport interface %s {\n", kind.Name, kind.Doc, kind.Of)
		for _, f := range kind.Members {
			fmt.Fprintf(b, "  /** %s */\n  readonly %s%s: %s;\n", f.Doc, f.Name, optional(f), fieldType(f))
		}
		b.WriteString("  readonly [name: string]: unknown;\n}\n")
	}
	for _, e := range event.Catalogue {
		fmt.Fprintf(b, "\n/** %s: %s */\nexport interface %s {\n", e.Name, e.Fires, payloadType(e.Name))
		for _, f := range e.Fields {
			fmt.Fprintf(b, "  /** %s */\n  readonly %s%s: %s;\n", f.Doc, f.Name, optional(f), fieldType(f))
		}
		b.WriteString("}\n")
	}
}

var handlerTypes = map[event.Shape]string{event.Listener: "Listener", event.Transform: "Transform", event.Veto: "Veto"}

// payloadType returns the name of the interface: ToolBeforeV1 of tool.before@v1.
func payloadType(name string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '@' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func optional(f event.Field) string {
	if f.Optional {
		return "?"
	}
	return ""
}

func fieldType(f event.Field) string {
	if len(f.Enum) > 0 {
		var words []string
		for _, word := range f.Enum {
			words = append(words, fmt.Sprintf("%q", word))
		}
		return strings.Join(words, " | ")
	}
	switch f.Type {
	case "string", "time":
		return "string"
	case "integer", "number":
		return "number"
	case "boolean":
		return "boolean"
	case "object":
		return "{ readonly [name: string]: unknown }"
	case "array":
		if len(f.Members) == 0 {
			return "readonly unknown[]"
		}
		return "readonly " + f.Of + "[]"
	}
	return "unknown"
}

const definitionsHead = `// Types of plugins that run inside the host. Generated: do not edit.
//
//   import type { Context } from "./mortise-hooks";
//
//   export function register(ctx: Context): void {
//     ctx.bus.on("tool.before@v1", (e) => ({ allow: e.toolName !== "shell", reason: "no shell here" }));
//   }

/** What register is given. All of it is read-only. */
export interface Context {
  readonly bus: Bus;
  readonly tools: Tools;
  readonly memory: Memory;
  readonly session: Session;
  readonly logger: Logger;
}

/** Hears. What it returns is ignored. */
export type Listener<P> = (payload: P) => unknown;

/** Returns what the event shall carry from here on, as in {...payload, text: "x"}; nothing leaves it as it was. */
export type Transform<P> = (payload: P) => P | void | Promise<P | void>;

/** Allows, with a changed payload or without, or refuses. */
export type Veto<P> = (payload: P) => Verdict<P> | Promise<Verdict<P>>;

export type Verdict<P> = { allow: boolean; reason?: string; payload?: P };

export interface HandlerOptions {
  /** Any finite number; lower comes first; 100 unless given. */
  priority?: number;
  /** What a failure of the handler means: the event goes on without it, or ends. */
  failureMode?: "skip" | "fail";
  /** Plugins whose handlers of the same priority come later. */
  before?: string | readonly string[];
  /** Plugins whose handlers of the same priority come first. */
  after?: string | readonly string[];
  /** How long it may take; 50 unless given. */
  deadlineMs?: number;
}

export interface Bus {
  /** Subscribes to an event, while register runs. What it returns takes the handler off again. */
  on<E extends keyof Handlers>(event: E, handler: Handlers[E], options?: HandlerOptions): () => void;
}

export interface Tools {
  /** Adds a tool, while register runs. The schema is a JSON Schema of the input. */
  add<I = any>(tool: { name: string; description?: string; schema: object; handler: (input: I) => unknown }): void;
}

/** The agent's memory. */
export interface Memory {
  get(key: string): Promise<string | undefined>;
  search(query: string, options?: { limit?: number }): Promise<any[]>;
}

/** The conversation that the present event happens in. */
export interface Session {
  readonly id: string;
  readonly type: string;
  readonly channel: string;
  readonly turn: number;
}

/** Lines of the host's log, a bounded number in a time. */
export interface Logger {
  debug(message: unknown, fields?: object): void;
  info(message: unknown, fields?: object): void;
  warn(message: unknown, fields?: object): void;
  error(message: unknown, fields?: object): void;
}

declare global {
  /** Writes to the host's log. */
  const console: { [level in "debug" | "info" | "log" | "warn" | "error" | "trace"]: (...values: unknown[]) => void };
}
`
