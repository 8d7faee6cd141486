// Package mount calls the tools of servers that speak the Model Context Protocol, each mounted
// as a plugin whose operations they are.
//
// A [Runner] keeps a connection to each server: to a program that it starts in the sandbox, or
// over HTTP through the rules of egress. The [Definition] of a server is pinned when it is
// registered. The runner lists the server's tools again from time to time, and does not call a
// tool whose definition is another than the one that was approved.
//
// Nothing that a server asks for reaches a model or a person: the client declares no
// capability, and its results are labelled untrusted by the manifest.
package mount
