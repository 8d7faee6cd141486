// Package script runs plugins that are written in TypeScript inside the host,
// contained.
//
// A plugin is a directory with an index.ts that exports register(ctx). [Compile]
// makes a [Program] of it; [Open] runs register in an engine of its own and
// returns an [Instance], whose subscriptions and tools are then called like any
// others:
//
//	program, err := script.Compile(ctx, dir)
//	...
//	instance, err := script.Open(ctx, program, script.Environment{Agent: "support", Plugin: "careful"})
//	...
//	defer instance.Close()
//	for _, s := range instance.Subscriptions() {
//		off, err := bus.On(s)
//		...
//	}
//
// The code has no files, network, timers or processes: what it sees is its
// payload and what ctx offers. Its memory is one block that the host can take
// away, and does from a handler that does not stop at its deadline; the
// goroutine it held comes back with an error, and the plugin is disabled for that
// agent. This stops code that runs away. It does not stop code that finds a
// fault in the engine and writes where it may not: see docs/threat-model.md.
package script
