package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// TestReloadOfWhoApproves: who may decide, and whether the owner may agree to their own call, is
// what the configuration said when it was read last.
func TestReloadOfWhoApproves(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	const base = "policy: {files: [policies]}\n"
	write(t, home, "mortise.yaml", base+"approvals: {by: [\"local:owner\"]}\n",
		"policies/p.cedar", `@id("waits") @approval("it is kept") permit (principal, action == Action::"execute", resource == Operation::"upper/upper");`)
	a := open(t, home)
	register(t, a, upper(t), false)
	approvals := a.As(a.Principal).Approvals()
	for n, read := range []struct {
		text string
		self bool
		ann  bool
	}{
		{text: "approvals: {by: [\"local:owner\"]}\n"},
		{text: "approvals: {by: [\"local:owner\", ann], self: true}\n", self: true, ann: true},
		{text: "approvals: {by: [\"local:owner\"], self: false}\n"},
	} {
		if err := os.WriteFile(filepath.Join(home, config.FileName), []byte(base+read.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Reload(func(config.Config) (func(), error) { return func() {}, nil }); err != nil {
			t.Fatal(err)
		}
		res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, n)), NoWait: true})
		if err != nil || res.Approval == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		asked, err := approvals.Asked(t.Context(), res.Approval.ID)
		if err != nil {
			t.Fatal(err)
		}
		if asked.Theirs != read.self || slices.Contains(asked.Deciders, "ann") != read.ann {
			t.Errorf("%s: theirs %t, deciders %q", read.text, asked.Theirs, asked.Deciders)
		}
		want := plugin.CodeApprovalSelf
		if read.self {
			want = ""
		}
		if _, err := approvals.Answer(t.Context(), res.Approval.ID, true, true, ""); plugin.CodeOf(err) != want {
			t.Errorf("%s: the owner's own answer: %v", read.text, err)
		}
	}
}
