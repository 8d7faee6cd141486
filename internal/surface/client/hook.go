package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/editor"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// hookProgram is what Claude Code is called in decisions.
const hookProgram = "claude-code"

// maxHookInput is how large the description of a use of a tool may be.
const maxHookInput = 4 << 20

// A toolUse is what Claude Code tells a hook of a use of a tool.
type toolUse struct {
	Event    string          `json:"hook_event_name"`
	Session  string          `json:"session_id"`
	Dir      string          `json:"cwd"`
	ID       string          `json:"tool_use_id"`
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Response json.RawMessage `json:"tool_response"`
}

// HookCommand returns the command that Claude Code runs before and after it uses a tool of its
// own. It asks the host that reach finds; options are those of the command line.
func HookCommand(in io.Reader, out io.Writer, options func() Options, reach func(ctx context.Context, do func(Host) error) error) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   hookProgram,
		Short: "Ask the host before Claude Code uses one of its own tools, and say how it ended",
		Long: `Ask the host before Claude Code uses one of its own tools, such as Bash, Write and
WebFetch, and say afterwards how it ended. 'mortise connect claude-code --hook' has
Claude Code run this. What the host does not allow, and every doubt, denies the
tool. A use that needs a person's approval waits for it, and joins the question when
it is tried again. Tools of this host over MCP are judged as such and pass, unless
the .mcp.json of a project gives another server a name that they could have.`,
		Example: `  mortise connect claude-code --hook
  mortise hook claude-code --wait 20s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			use, err := readUse(in)
			if err != nil {
				return err
			}
			if editor.OwnTool(use.Tool, projects(use), func(s editor.Server) bool { return isHost(s, options()) }) {
				return nil
			}
			if use.Event != "PreToolUse" {
				return reach(cmd.Context(), func(h Host) error { return settleUse(cmd.Context(), h, use) })
			}
			word, reason := host.DecisionDeny, ""
			err = reach(cmd.Context(), func(h Host) (err error) {
				word, reason, err = judgeUse(cmd.Context(), h, use, wait)
				return err
			})
			if err != nil {
				word, reason = host.DecisionDeny, "the host could not be asked, so the tool does not run: "+err.Error()
			}
			return tellUse(out, word, reason)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 50*time.Second, "how long to wait for a person, where policy asks for one; at most 100s")
	return cmd
}

// projects are the directories whose configuration Claude Code may have read.
func projects(use *toolUse) (dirs []string) {
	here, _ := os.Getwd()
	for _, dir := range []string{os.Getenv("CLAUDE_PROJECT_DIR"), use.Dir, here} {
		if filepath.IsAbs(dir) && !slices.Contains(dirs, filepath.Clean(dir)) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

// isHost reports whether a server of a configuration is the host that is meant: the entry is
// one that connect would write.
func isHost(s editor.Server, o Options) bool {
	if s.Name != editor.HostName || len(s.Command) == 0 || !filepath.IsAbs(s.Command[0]) { // another path is another program elsewhere
		return false
	}
	for _, list := range []string{"", mcp.ListAll, mcp.ListSearch} {
		e, err := entryOf(o, commandLine(list, false))
		if err == nil && sameFile(s.Command[0], e.Command) && slices.Equal(s.Command[1:], e.Args) && maps.Equal(s.Env, e.Env) {
			return true
		}
	}
	return false
}

func sameFile(one, other string) bool {
	a, err := os.Stat(one)
	b, errB := os.Stat(other)
	return err == nil && errB == nil && os.SameFile(a, b)
}

func readUse(in io.Reader) (*toolUse, error) {
	raw, err := io.ReadAll(io.LimitReader(in, maxHookInput+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxHookInput {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the use of a tool has more than %d MiB", maxHookInput>>20)
	}
	use := &toolUse{}
	if err := json2.Unmarshal(raw, use, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "standard input has no use of a tool: %w", err)
	}
	switch {
	case use.Event != "PreToolUse" && use.Event != "PostToolUse" && use.Event != "PostToolUseFailure":
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%.64q is no event of this hook: PreToolUse, PostToolUse and PostToolUseFailure are", use.Event)
	case use.Tool == "" || use.Session == "" || use.ID == "":
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the use of a tool lacks tool_name, session_id or tool_use_id")
	}
	if text := bytes.TrimSpace(use.Input); len(text) == 0 || string(text) == "null" {
		use.Input = json.RawMessage("{}")
	}
	return use, nil
}

// tellUse answers Claude Code. A tool that may run is allowed by that, without a question of
// its own.
func tellUse(out io.Writer, word, reason string) error {
	if word != host.DecisionAllow {
		word = host.DecisionDeny
	}
	type answer struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason,omitempty"`
	}
	return json.NewEncoder(out).Encode(map[string]answer{"hookSpecificOutput": {"PreToolUse", word, reason}})
}

// maxHookWait is shorter than the program lets a hook run.
const maxHookWait = 100 * time.Second

// judgeUse asks whether a tool may be used. Only the word allow allows it.
func judgeUse(ctx context.Context, h Host, use *toolUse, wait time.Duration) (word, reason string, err error) {
	wait = min(max(wait, 0), maxHookWait)
	ctx, cancel := context.WithTimeout(ctx, wait+15*time.Second)
	defer cancel()
	notes, err := openNotes()
	if err != nil {
		return "", "", err
	}
	hash, err := canon.Hash(use.Input)
	if err != nil {
		return "", "", plugin.Errorf(plugin.CodeInvalidInput, "the arguments are no strict JSON: %w", err)
	}
	asked := note(use.Session, use.Tool, hash) // where the question that a person is asked about stands
	key, until := cmp.Or(notes.read(asked), use.key()), time.Now().Add(wait)
	d, err := askAbout(ctx, h, use, key, wait)
	if err == nil && key != use.key() && d.Code == plugin.CodeApprovalUsed { // an equal use had that question
		key = use.key()
		d, err = askAbout(ctx, h, use, key, time.Until(until))
	}
	if err != nil {
		return "", "", err
	}
	if d.Word == host.DecisionPending {
		reason := "a person is asked: " + d.Reason + ". Nothing was done. Tell the user, and use the tool again with the same arguments once it is approved"
		if d.Approval != nil {
			reason += "; 'mortise approvals show " + d.Approval.ID + "' has the question"
		}
		return host.DecisionDeny, reason, notes.write(asked, key)
	}
	notes.remove(asked)
	if d.Word == host.DecisionAllow && key != use.key() {
		err = notes.write(note(use.Session, use.ID, ""), key)
	}
	return d.Word, d.Reason, err
}

// askAbout asks whether a use may run, and waits for a person if one is asked. Of several uses that
// ask with one key the host allows one.
func askAbout(ctx context.Context, h Host, use *toolUse, key string, wait time.Duration) (*rest.ToolDecision, error) {
	d, err := decide(ctx, h, use, key)
	if err != nil || d.Word != host.DecisionPending || wait <= 0 {
		return d, err
	}
	if d, err = awaitDecision(ctx, h, d.ID, use.key(), wait); err != nil || d.Word != host.DecisionAllow {
		return d, err
	}
	return decide(ctx, h, use, key) // policy has the last word
}

// settleUse says how a tool ended that was allowed.
func settleUse(ctx context.Context, h Host, use *toolUse) error {
	notes, err := openNotes()
	if err != nil {
		return err
	}
	own := note(use.Session, use.ID, "")
	key := notes.read(own)
	if key == "" {
		key = use.key()
	}
	d, err := decide(ctx, h, use, key)
	if err != nil {
		return fmt.Errorf("%s ran with other arguments than were decided about, or it is not known to the host: %w", use.Tool, err)
	}
	if d.Word != host.DecisionAllow {
		return nil // it was not allowed, or is settled
	}
	report := host.Report{Outcome: "succeeded"}
	if use.Event == "PostToolUseFailure" {
		report.Outcome = "failed"
	}
	if report.Arguments, err = canon.Hash(use.Input); err != nil {
		return err
	}
	if len(use.Response) > 0 {
		if report.Result, err = canon.Hash(use.Response); err != nil {
			report.Result = fmt.Sprintf("sha256:%x", sha256.Sum256(use.Response))
		}
	}
	if err := settle(ctx, h, d.ID, report); err != nil {
		return err
	}
	notes.remove(own)
	return nil
}

// key is the idempotency key of the question about a use.
func (u *toolUse) key() string { return "hook-" + note(u.Session, u.ID, "") }

func decide(ctx context.Context, h Host, use *toolUse, key string) (*rest.ToolDecision, error) {
	switch h := h.(type) {
	case embedded:
		d, err := h.API.Decisions().Decide(ctx, host.DecisionAsked{Program: hookProgram, Tool: use.Tool, Arguments: use.Input, Key: key, Use: use.key(), Trace: use.Session})
		if err != nil {
			return nil, err
		}
		return rest.DecisionOf(d), nil
	case *remote:
		var d rest.ToolDecision
		_, err := h.do(ctx, asking{
			method: http.MethodPost, path: at("decisions"), key: key,
			body: rest.DecisionQuestion{Namespace: hookProgram, Tool: use.Tool, Arguments: use.Input, Use: use.key(), Trace: use.Session},
		}, &d)
		return &d, err
	}
	return nil, errNoHost
}

var errNoHost = plugin.Errorf(plugin.CodeInternal, "a host that is reached in no known way")

func awaitDecision(ctx context.Context, h Host, id, use string, wait time.Duration) (*rest.ToolDecision, error) {
	switch h := h.(type) {
	case embedded:
		d, err := h.API.Decisions().Get(ctx, id, use, wait)
		if err != nil {
			return nil, err
		}
		return rest.DecisionOf(d), nil
	case *remote:
		var d rest.ToolDecision
		return &d, h.get(ctx, &d, map[string][]string{"wait": {wait.String()}, "use": {use}}, "decisions", id)
	}
	return nil, errNoHost
}

func settle(ctx context.Context, h Host, id string, report host.Report) error {
	switch h := h.(type) {
	case embedded:
		_, err := h.API.Decisions().Settle(ctx, id, report)
		return err
	case *remote:
		return h.post(ctx, map[string]string{"outcome": report.Outcome, "arguments_hash": report.Arguments, "result_hash": report.Result}, nil, "decisions", id+":settle")
	}
	return errNoHost
}

// notes are small files that say under which key a use was asked about, where that is not its
// own: each run of a hook is a process of its own.
type notes struct{ dir string }

// notesLast is how long a note is kept.
const notesLast = 24 * time.Hour

func openNotes() (notes, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return notes{}, err
	}
	n := notes{filepath.Join(cache, "mortise", "hooks")}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return n, err
	}
	all, err := os.ReadDir(n.dir)
	for _, one := range all {
		if info, err := one.Info(); err == nil && time.Since(info.ModTime()) > notesLast {
			n.remove(one.Name())
		}
	}
	return n, err
}

// note returns the name of a note.
func note(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

func (n notes) read(name string) string {
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil || len(text) > 64 {
		return ""
	}
	return string(text)
}

func (n notes) write(name, key string) error {
	return os.WriteFile(filepath.Join(n.dir, name), []byte(key), 0o600)
}

// remove takes a note away. One that stays is of no harm: its question is over.
func (n notes) remove(name string) {
	if err := os.Remove(filepath.Join(n.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
}
