package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// One approval lets one use of a tool run, of several equal ones that Claude Code asks about at once.
func TestOneApprovalIsOneUseOfATool(t *testing.T) {
	t.Parallel()
	n := prepare(t, "")
	n.write("mortise.yaml", strings.Replace(config, `approvals: {by: ["local:owner"]}`, "approvals: {by: [bob], trust_as: true}", 1))
	n.write("serve.cedar", rules+`@id("writes") @approval("it writes") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"reported.claude-code");`)
	n.token = strings.TrimSpace(n.must("tokens", "create", "test", "--for", "ann", "--scope", "decide"))
	n.serve()
	env := []string{"XDG_CACHE_HOME=" + t.TempDir()} // the hooks of one person
	hook := func(round int, use string) string {
		return runs(t, n, n.url, `{"session_id":"s`+fmt.Sprint(round)+`","hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"a"},"tool_use_id":"`+use+`"}`, env,
			self(t), "mortise", "hook", "claude-code", "--wait", "0s")
	}
	for round := range 3 {
		if said := hook(round, fmt.Sprint("asks", round)); !strings.Contains(said, "a person is asked") {
			t.Fatalf("before the approval the hook says %s", said)
		}
		var page struct{ Approvals []struct{ ID, State string } }
		if err := json.Unmarshal([]byte(n.must("approvals", "list", "--json", "--as", "bob")), &page); err != nil || len(page.Approvals) == 0 {
			t.Fatalf("the approvals are %+v, %v", page, err)
		}
		n.must("approvals", "approve", page.Approvals[0].ID, "--as", "bob")
		const uses = 4
		said := make([]string, uses)
		var all sync.WaitGroup
		for i := range uses {
			all.Go(func() { said[i] = hook(round, fmt.Sprintf("use %d %d", round, i)) })
		}
		all.Wait()
		allowed := 0
		for _, one := range said {
			if strings.Contains(one, `"permissionDecision":"allow"`) {
				allowed++
			}
		}
		if allowed != 1 {
			t.Fatalf("one approval let %d of %d equal uses run, want 1:\n%s", allowed, uses, strings.Join(said, ""))
		}
		// The others have questions of their own, which end here.
		for {
			page.Approvals = nil
			if err := json.Unmarshal([]byte(n.must("approvals", "list", "--json", "--as", "bob")), &page); err != nil {
				t.Fatal(err)
			}
			open := ""
			for _, one := range page.Approvals {
				if one.State == "open" || one.State == "" {
					open = one.ID
				}
			}
			if open == "" {
				break
			}
			n.must("approvals", "deny", open, "--reason", "enough", "--as", "bob")
		}
	}
}
