package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	hashicorp "github.com/hashicorp/go-plugin"

	"github.com/mortise-dev/mortise/bench/peer"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A contestant answers 1 KB with the same 1 KB.
type contestant struct {
	name   string
	call   func(ctx context.Context) error
	single bool   // cannot be called by several at a time
	pinned target // p50 of one caller, as a ratio to the raw bytes
	shared target // calls/s of 16 callers
	close  func()
}

// An opener starts a contestant, warm after the first call. One that cannot
// take part here returns nil.
type opener func(ctx context.Context, l *lab) (*contestant, error)

// warmOpeners are the contestants of table A, the floor first.
var warmOpeners = []opener{
	rawBytes, rawFrames,
	mortiseGo, mortisePython, mortiseNode,
	kernelContestant,
	hashicorpBytes, hashicorpMaps, hashicorpGRPC,
}

// openAll starts the contestants. All of them are closed by closeAll, also
// after an error.
func openAll(ctx context.Context, l *lab, openers []opener) (all []*contestant, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range all {
			c.close()
		}
	}
	for _, open := range openers {
		c, err := open(ctx, l)
		if err != nil {
			return all, closeAll, err
		}
		if c == nil {
			continue
		}
		all = append(all, c)
		for range 3000 { // caches, pools and just-in-time compilers
			if err := c.call(ctx); err != nil {
				return all, closeAll, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return all, closeAll, nil
}

// ---- the runner ----

func mortiseGo(ctx context.Context, l *lab) (*contestant, error) {
	c, err := l.throughRunner(ctx, "Mortise runner + Go plugin", l.program("echo"), process.Options{})
	if c != nil {
		c.pinned, c.shared = atMostRatio(3), atLeast(100_000)
	}
	return c, err
}

func mortisePython(ctx context.Context, l *lab) (*contestant, error) {
	if l.python == nil {
		return nil, nil
	}
	c, err := l.throughRunner(ctx, "Mortise runner + Python plugin", echoFile("echo.py"), process.Options{})
	if c != nil {
		c.pinned = atMostRatio(5)
	}
	return c, err
}

func mortiseNode(ctx context.Context, l *lab) (*contestant, error) {
	if l.node == nil {
		return nil, nil
	}
	return l.throughRunner(ctx, "Mortise runner + Node plugin", l.program("echo.mjs"), process.Options{})
}

func (l *lab) throughRunner(ctx context.Context, name, entry string, opts process.Options) (*contestant, error) {
	r := l.runner(opts)
	operation, request := echo(entry, protocol.Version2, plugin.IsolationTenant), newCall(payload())
	run := func(ctx context.Context) (plugin.Result, error) { return r.Run(ctx, operation, request, nil) }
	res, err := run(ctx)
	if err == nil && !sameJSON(res.Data, request.Input) {
		err = fmt.Errorf("the answer differs: %s", res.Data)
	}
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &contestant{
		name:  name,
		call:  func(ctx context.Context) error { _, err := run(ctx); return err },
		close: func() { _ = r.Close() },
	}, nil
}

func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// ---- the whole kernel ----

// kernelContestant is a whole call to the same Go plugin: resolved, hashed,
// checked in, judged, run, checked out, hashed and recorded, written behind.
func kernelContestant(ctx context.Context, l *lab) (*contestant, error) {
	a, err := l.host(ctx)
	if err != nil {
		return nil, err
	}
	request := *newCall(payload())
	request.Operation, request.ID = "bench.echo", ""
	c := &contestant{
		name:  "Mortise kernel + Go plugin, recorded",
		call:  func(ctx context.Context) error { _, err := a.Kernel.Call(ctx, request); return err },
		close: func() { _ = a.Close() },
	}
	if err := c.call(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// hostManifest describes the echo plugin with schemas that look at each of the
// payload's properties. Its results are not reused: every call is a call.
const hostManifest = `name: bench.echo
version: 1.0.0
runner: {kind: process, command: [./echo]}
operations:
  echo:
    kind: tool
    no_cache: true
    input: &any {type: object, additionalProperties: {type: string, maxLength: 200}, maxProperties: 50}
    output: *any
`

// host is a whole host with the echo plugin, in a directory of its own.
func (l *lab) host(ctx context.Context) (*app.App, error) {
	return l.hostWith(ctx, app.Options{})
}

// serving returns one that stays: it keeps ready what its next calls need.
func (l *lab) serving(ctx context.Context) (*app.App, error) {
	return l.hostWith(ctx, app.Options{Standby: true})
}

func (l *lab) hostWith(ctx context.Context, o app.Options) (*app.App, error) {
	home, err := os.MkdirTemp(l.dir, "home-")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(home, "echo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Link(l.program("echo"), filepath.Join(dir, "echo")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(hostManifest), 0o644); err != nil {
		return nil, err
	}
	o.Home = home
	return openWith(ctx, o, dir)
}

// openWith opens a host that has the plugin in a directory.
func openWith(ctx context.Context, o app.Options, dir string) (*app.App, error) {
	o.Log = slog.New(slog.DiscardHandler)
	a, err := app.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if _, err := a.Registry.Register(ctx, dir, registry.RegisterOptions{Enable: true}); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// ---- HashiCorp's go-plugin ----

func hashicorpBytes(_ context.Context, l *lab) (*contestant, error) {
	return l.overHashicorp("HashiCorp go-plugin net/rpc, opaque bytes", "netrpc", peer.Echo.Bytes)
}

func hashicorpMaps(_ context.Context, l *lab) (*contestant, error) {
	return l.overHashicorp("HashiCorp go-plugin net/rpc, JSON maps", "netrpc", mapped)
}

func hashicorpGRPC(_ context.Context, l *lab) (*contestant, error) {
	return l.overHashicorp("HashiCorp go-plugin gRPC, opaque bytes", "grpc", peer.Echo.Bytes)
}

// mapped has a map at both ends, as a host has that looks at what it passes on.
func mapped(e peer.Echo, in []byte) ([]byte, error) {
	var value map[string]any
	if err := json.Unmarshal(in, &value); err != nil {
		return nil, err
	}
	out, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	answer, err := e.Maps(out)
	if err != nil {
		return nil, err
	}
	return answer, json.Unmarshal(answer, &value)
}

func (l *lab) overHashicorp(name, transport string, method func(peer.Echo, []byte) ([]byte, error)) (*contestant, error) {
	client := l.hashicorpClient(transport)
	e, err := dispense(client)
	if err != nil {
		client.Kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	in := payload()
	return &contestant{
		name:  name,
		call:  func(context.Context) error { _, err := method(e, in); return err },
		close: client.Kill,
	}, nil
}

func (l *lab) hashicorpClient(transport string) *hashicorp.Client {
	config := &hashicorp.ClientConfig{
		HandshakeConfig: peer.Handshake, Plugins: peer.NetRPC,
		Cmd:              exec.Command(l.program("hashicorp"), transport),
		AllowedProtocols: []hashicorp.Protocol{hashicorp.ProtocolNetRPC},
		Logger:           hclog.NewNullLogger(),
	}
	if transport == "grpc" {
		config.Plugins, config.AllowedProtocols = peer.GRPC, []hashicorp.Protocol{hashicorp.ProtocolGRPC}
	}
	return hashicorp.NewClient(config)
}

func dispense(client *hashicorp.Client) (peer.Echo, error) {
	session, err := client.Client()
	if err != nil {
		return nil, err
	}
	e, err := session.Dispense("echo")
	if err != nil {
		return nil, err
	}
	return e.(peer.Echo), nil
}
