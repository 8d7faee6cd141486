// Package protocol is the wire between the host and a plugin process: JSON
// objects, one a line, in both directions. docs/protocol.md is its
// specification, the folder schemas its JSON Schemas, testdata the recorded
// conversations that the host and every SDK replay.
//
// Version 2 is JSON-RPC 2.0 ([Frame]); version 1 is four messages ([Handshake],
// [HandshakeReply], [Request], [Response]). The package reads and writes lines
// and knows their shapes. Who sends what when, how long anyone waits and what
// a process is: see package internal/runtime/process for the host, sdk/go for a plugin.
package protocol

// Versions of the protocol, as manifests and handshakes spell them.
const (
	Version1 = "1"
	Version2 = "2"

	// RuntimeVersion is what version 1 is called on the wire unless a binding
	// says otherwise.
	RuntimeVersion = "rterm.plugin.v1"
)

// Bounds of a line.
const (
	MaxFrame1 = 1 << 20  // version 1
	MaxFrame2 = 4 << 20  // version 2, by default
	MaxFrame  = 16 << 20 // version 2, the most an administrator may allow
	MaxDepth  = 64       // nesting of what a plugin writes
	MaxID     = 64       // bytes of a plugin's request id
)
