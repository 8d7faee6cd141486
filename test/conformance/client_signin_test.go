package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// What the command line says that a person goes on with.
var (
	namesIssuer = regexp.MustCompile(`say --issuer (\S+)`)
	wantsScopes = regexp.MustCompile(`mortise mcp sign-in server --scopes '([^']*)'`)
	wantsSignIn = regexp.MustCompile(`mortise mcp sign-in server`)
)

// maxSteps is how often a person goes on where a server wants something more of them.
const maxSteps = 3

// signedIn mounts a server that someone signs in to, as a person does it: each step is what the
// command line said at the one before.
func (h mountedHost) signedIn(scenario, url string) int {
	var said struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			return fail("%v", err)
		}
	}
	oauth := map[string]any{}
	switch {
	case said.ClientSecret != "":
		oauth["client_id"], oauth["client_secret"] = said.ClientID, map[string]string{"secret": "CLIENT"}
		if _, _, status := h.typed(said.ClientSecret, "secrets", "set", "CLIENT", "--system", "--plugin", "server"); status != 0 {
			return status
		}
	case scenario == "auth/basic-cimd":
		oauth["client_id"] = "https://conformance-test.local/client-metadata.json"
	}
	if len(oauth) == 0 {
		if _, status := h.run("mcp", "mount", "server", "--url", url, "--oauth"); status != 0 {
			return status
		}
	} else if err := h.manifest(url, oauth); err != nil {
		return fail("%v", err)
	}
	if status := h.signIn(); status != 0 {
		return status
	}
	for range maxSteps {
		_, said, status := h.typed("", "run", "server/test-tool", "--input", "{}")
		if status == 0 {
			return 0
		}
		if scopes := wantsScopes.FindStringSubmatch(said); scopes != nil {
			status = h.signIn("--scopes", scopes[1])
		} else if wantsSignIn.MatchString(said) {
			status = h.signIn()
		}
		if status != 0 {
			return status
		}
	}
	return fail("the server wants something more each time")
}

// manifest writes one with an oauth of its own, as a person edits it.
func (h mountedHost) manifest(url string, oauth map[string]any) error {
	dir := filepath.Join(h.home, "mounts", "server")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{ // which is YAML too
		"name": "server", "version": "1.0.0", "owner": "suite", "description": "The server of a scenario.",
		"runner": map[string]any{"kind": "mcp", "url": url, "oauth": oauth},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.yaml"), text, 0o600)
}

// signIn signs in, by the authorization server that the server names. One that is another than
// before is accepted, as by an administrator who knows of it.
func (h mountedHost) signIn(more ...string) (status int) {
	begin := append([]string{"mcp", "sign-in", "server", "--no-browser"}, more...)
	for range maxSteps {
		_, said, failed := h.typed("", begin...)
		issuer := namesIssuer.FindStringSubmatch(said)
		if issuer == nil {
			return failed
		}
		if _, said, status = h.typed("", append(begin[:len(begin):len(begin)], "--issuer", issuer[1])...); !strings.Contains(said, "mortise: conflict") {
			return status
		}
		if strings.Contains(said, "sign-out server") {
			_, _ = h.run("mcp", "sign-out", "server")
		}
	}
	return status
}

// A browser reads what the command line says, and visits the page that it names: the suite's
// authorization servers send it back at once.
type browser struct {
	text   bytes.Buffer
	line   []byte
	visits sync.WaitGroup
}

// Write implements [io.Writer].
func (b *browser) Write(p []byte) (int, error) {
	b.text.Write(p)
	_, _ = os.Stderr.Write(p)
	b.line = append(b.line, p...)
	for {
		line, rest, found := bytes.Cut(b.line, []byte("\n"))
		if !found {
			return len(p), nil
		}
		b.line = rest
		if at := strings.TrimSpace(string(line)); strings.HasPrefix(at, "http://") {
			b.visits.Go(func() { visit(at) })
		}
	}
}

// visit follows redirects as a browser does.
func visit(address string) {
	client := &http.Client{Timeout: time.Minute}
	resp, err := client.Get(address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return
	}
	_ = resp.Body.Close()
	fmt.Fprintln(os.Stderr, "browser:", resp.Status)
}
