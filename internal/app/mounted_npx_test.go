package app_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/surface/editor"
)

const npmServer = `#!/usr/bin/env node
const lines = require('node:readline').createInterface({ input: process.stdin })
const tools = [{ name: 'say', description: 'Say something.', inputSchema: { type: 'object' } }]
lines.on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'memory', version: '1' } },
    'tools/list': { tools },
    'tools/call': { content: [{ type: 'text', text: 'fetched, with ' + process.argv.slice(2).join(' ') }] },
  }
  const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: 'no' } }
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
})
`

// npmRegistry is a registry of one package.
func npmRegistry(t *testing.T) *httptest.Server {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, file := range [][2]string{{"package/package.json", `{"name": "@example/memory", "version": "1.2.3", "bin": {"memory": "server.js"}}`}, {"package/server.js", npmServer}} {
		if err := archive.WriteHeader(&tar.Header{Name: file[0], Mode: 0o755, Size: int64(len(file[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	_ = archive.Close()
	_ = zipped.Close()
	sum := sha512.Sum512(packed.Bytes())
	s := httptest.NewUnstartedServer(nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".tgz"):
			_, _ = w.Write(packed.Bytes())
		case strings.EqualFold(r.URL.EscapedPath(), "/@example%2fmemory"):
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "@example/memory", "dist-tags": map[string]any{"latest": "1.2.3"}, "versions": map[string]any{"1.2.3": map[string]any{
				"name": "@example/memory", "version": "1.2.3", "bin": map[string]any{"memory": "server.js"},
				"dist": map[string]any{"tarball": "http://" + r.Host + "/memory-1.2.3.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])},
			}}})
		default:
			http.NotFound(w, r)
		}
	})
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// A server that npx fetches is fetched through the proxy into the scratch directory, and started
// there. A registry that is not declared is named.
func TestAServerThatNpxFetches(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"/usr/bin/node", "/usr/bin/npm"} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("this test needs " + program + ", which is not installed; install it to run the test")
		}
	}
	npm := npmRegistry(t)
	at := npm.Listener.Addr().String()
	home := t.TempDir()
	write(t, home, "mortise.yaml", allowAll+"egress: {loopback: [memory, lost]}\n")
	a := open(t, home)
	needsFullSandbox(t, a)
	s := editor.Server{Name: "memory", Command: []string{"npx", "-y", "@example/memory@1.2.3", "a b", "c"}, Env: map[string]string{"npm_config_registry": npm.URL}, Hosts: []string{at}}
	m, err := s.Mount("memory", os.LookupEnv, false)
	if err != nil || m.Warning != "" {
		t.Fatal(m.Warning, err)
	}
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", string(m.Manifest))
	for name, text := range m.Files {
		write(t, dir, name, string(text))
	}
	register(t, a, dir, false)
	res, err := call(t, a, "memory/say", "{}")
	if err != nil || string(res.Data) != `[{"type":"text","text":"fetched, with a b c"}]` {
		t.Errorf("%s, %v", res.Data, err)
	}

	// Its registry is not the one that is declared.
	dir = t.TempDir()
	write(t, dir, "manifest.yaml", strings.NewReplacer("name: memory", "name: lost", npm.URL, "http://localhost:8").Replace(string(m.Manifest)))
	for name, text := range m.Files {
		write(t, dir, name, string(text))
	}
	_, err = a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
	if want := "localhost on port 8 is not among the hosts that the plugin declares"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("it failed with %v, not with %q", err, want)
	}
}
