package authors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// spelledShu are the codes of the host as the Shu contract spells them.
var spelledShu = map[string]string{
	"invalid_input": "validation_error", "invalid_output": "output_validation_error", "missing_identity": "insufficient_scopes",
	"policy_denied": "insufficient_scopes", "scope_denied": "insufficient_scopes", "budget_exceeded": "quota_exceeded", "plugin_error": "plugin_execute_error",
}

// TestShu runs the plugins of the Shu contract.
func TestShu(t *testing.T) {
	for dir, f := range cases(t, "shu") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			for _, c := range f.Cases {
				t.Run(c.Title, func(t *testing.T) { runShu(t, dir, f.Plugin, c) })
			}
		})
	}
}

// decided are cases in which this host answers otherwise than their author expects, each with
// the reason.
var decided = map[string]string{
	"geo_tools/*": "its manifest computes the version: a manifest is read and never run (SH-08)",
	"outlook_replies/an unknown draft cannot be sent":                      "an action that requires approval waits before anything of it runs (SH-15)",
	"sheets_export/delegation by the schedule's overlay without a subject": "no provider of accounts is configured here, which is said first",
}

func runShu(t *testing.T, dir, name string, c item) {
	for _, title := range []string{"*", c.Title} {
		if reason := decided[filepath.Base(dir)+"/"+title]; reason != "" {
			t.Skip(reason)
		}
	}
	p := provide(t)
	address := strings.TrimPrefix(p.base, "http://")
	config := fmt.Sprintf(`policy:
  allow:
    - {operations: ["*"], effects: ["*"], untrusted: allow}
approvals: {by: [bob], trust_as: true}
egress:
  loopback: [%s]
  hosts: {%[1]s: [%q]}
`, name, address)
	h := newHost(t, config)
	if len(c.Identities) > 0 {
		connectAccounts(t, h, config, c.Identities)
	}
	h.must(t, "plugins", "register", "--dev", dir)
	h.must(t, "kb", "create", "main")
	for key, value := range c.Secrets {
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		h.must(t, "secrets", "set", key, "--from-file", secret)
		h.must(t, "secrets", "set", key, "--from-file", secret, "--system")
	}
	for _, raw := range c.Documents {
		var document struct{ Title, Content string }
		if err := json.Unmarshal(raw, &document); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), document.Title+".txt")
		if err := os.WriteFile(file, []byte(document.Content), 0o600); err != nil {
			t.Fatal(err)
		}
		h.must(t, "kb", "add", file, "--kb", "main", "--title", document.Title)
	}
	for _, before := range c.Before {
		p.set(append(before.HTTP, c.HTTP...))
		askShu(t, h, p, name, before, c.Files)
	}
	p.set(c.HTTP)
	printed := askShu(t, h, p, name, c, c.Files)
	var got struct {
		Status string `json:"status"`
		Data   any    `json:"data"`
		Error  struct {
			Code       string `json:"code"`
			PluginCode string `json:"plugin_code"`
		} `json:"error"`
		Actions any `json:"actions"`
		Skips   any `json:"skips"`
	}
	if err := json.Unmarshal(printed, &got); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	code := got.Error.PluginCode
	if code == "" {
		code = got.Error.Code
		if spelled, other := spelledShu[code]; other {
			code = spelled
		}
	}
	if ok := got.Error.Code == ""; ok != c.Expect.OK || code != c.Expect.Code {
		t.Fatalf("ok is %v with code %q; wanted is %v with %q\n%.1500s", ok, code, c.Expect.OK, c.Expect.Code, printed)
	}
	if want := decode(t, p.place(c.Expect.Contains)); want != nil {
		whole := got.Data
		switch {
		case c.Call == "list_actions":
			whole = map[string]any{"actions": byName(got.Actions)}
			if object, is := want.(map[string]any); is {
				object["actions"] = byName(object["actions"])
			}
		case c.Call == "perform_action":
			status := got.Status
			if status == "succeeded" {
				status = "ok"
			}
			whole = map[string]any{"status": status, "result": got.Data}
		}
		if why := contains("", whole, want); why != "" {
			t.Errorf("%s\n%.1500s", why, printed)
		}
	}
}

// connectAccounts links the caller with accounts at a provider of this machine.
func connectAccounts(t *testing.T, h *host, config string, all []identity) {
	t.Helper()
	server := accounttest.New(t)
	var b strings.Builder
	b.WriteString("processes: {handshake: 60s}\n" + config + "auth:\n  providers:\n")
	if err := os.WriteFile(filepath.Join(h.home, "robot.json"), []byte(server.RobotKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		fmt.Fprintf(&b, "    %s: {kind: oidc, client_id: %s, client_secret_name: client, issuer: %q}\n", one.Provider, accounttest.ClientID, server.URL)
	}
	if err := os.WriteFile(filepath.Join(h.home, "mortise.yaml"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Skip("accounts are connected in a browser: TestPublishedPlugins of package shu has them")
}

// askShu makes one call and returns what was printed.
func askShu(t *testing.T, h *host, p *provider, name string, c item, files map[string]string) []byte {
	t.Helper()
	input := p.place(c.Input)
	input = bytes.ReplaceAll(input, []byte("@kb:main"), []byte("main"))
	if len(c.Documents) > 0 { // the caller has bound it
		var params map[string]any
		if err := json.Unmarshal(input, &params); err != nil {
			t.Fatal(err)
		}
		params["__host"] = map[string]any{"kb": map[string]any{"knowledge_base_ids": []string{"main"}}}
		var err error
		if input, err = json.Marshal(params); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range files {
		quoted, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		input = bytes.ReplaceAll(input, []byte(`"@file:`+file+`"`), quoted)
	}
	path := filepath.Join(t.TempDir(), "input.json")
	operation := name // the parameters say which one is meant
	if !bytes.Contains(input, []byte(`"op"`)) {
		operation += "/" + c.Operation
	}
	var action struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	switch c.Call {
	case "list_actions":
		out, errs, err := h.command(t, "plugins", "actions", name, "--json")
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		return out
	case "perform_action":
		if err := json.Unmarshal(input, &action); err != nil {
			t.Fatal(err)
		}
		operation, input = name+"/"+action.Name, action.Args
	}
	if c.Feed {
		t.Skip("schedules: TestAWebFeedIsTakenInByFeeds of package shu has them")
	}
	if err := os.WriteFile(path, input, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", operation, "--json", "--input", "@" + path}
	if c.Call != "" {
		args = append(args, "--no-wait")
	}
	out, errs, _ := h.command(t, args...)
	if len(out) == 0 {
		t.Fatalf("nothing is printed: %s", errs)
	}
	return out
}

// byName sorts actions, whose order the contract leaves open.
func byName(actions any) any {
	if all, is := actions.([]any); is {
		slices.SortFunc(all, func(a, b any) int {
			return strings.Compare(fmt.Sprint(a.(map[string]any)["name"]), fmt.Sprint(b.(map[string]any)["name"]))
		})
	}
	return actions
}
