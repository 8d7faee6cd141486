package cli

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// newCommand returns a run of the program that writes nowhere, and its root.
func newCommand() (*command, *cobra.Command) {
	c := &command{in: strings.NewReader(""), out: io.Discard, errs: terminal.NewScreen(io.Discard), scrubber: secret.NewScrubber()}
	return c, c.root()
}

// leaves are the commands that do something and are shown.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return nil
	}
	if !cmd.HasSubCommands() && cmd.Runnable() {
		return []*cobra.Command{cmd}
	}
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

// TestEveryCommandIsInAGroup: the help of the program shows none beside them.
func TestEveryCommandIsInAGroup(t *testing.T) {
	t.Parallel()
	_, root := newCommand()
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.GroupID == "" {
			t.Errorf("%s is in no group", cmd.Name())
		}
	}
}

// TestEveryCommandHasAnExample that is a command line of its own: the command is found,
// its flags and its arguments are right.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	_, root := newCommand()
	for _, cmd := range leaves(root) {
		shown := false
		for _, line := range examplesOf(cmd) {
			_, root := newCommand() // flags keep what they were set to
			found, rest, err := root.Find(line[1:])
			if err != nil {
				t.Errorf("%s: %q: %v", cmd.CommandPath(), line, err)
				continue
			}
			shown = shown || found.CommandPath() == cmd.CommandPath()
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", cmd.CommandPath(), line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %q: %v", cmd.CommandPath(), line, err)
			}
		}
		if !shown {
			t.Errorf("%s has no example of its own", cmd.CommandPath())
		}
	}
}

// examplesOf are the command lines in an example that run this program.
func examplesOf(cmd *cobra.Command) (lines [][]string) {
	for line := range strings.Lines(cmd.Example) {
		words := shellWords(line)
		for at := slices.Index(words, "mortise"); at >= 0; at = slices.Index(words, "mortise") {
			words = words[at:]
			end := slices.IndexFunc(words, func(word string) bool { return slices.Contains([]string{"|", "<", ")", "&&"}, word) })
			if end < 0 {
				end = len(words)
			}
			lines = append(lines, words[:end])
			words = words[end:]
		}
	}
	return lines
}

// shellWords takes a line apart as a shell does, as far as examples go.
func shellWords(line string) (words []string) {
	line = strings.NewReplacer("$(", " ", ")", " ) ").Replace(strings.TrimSpace(line))
	var word strings.Builder
	quote, any := rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, any = r, true
		case quote == 0 && r == ' ':
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	return words
}

// needy are commands without arguments whose examples need more than a data directory.
var needy = []string{
	"mortise serve",            // stays
	"mortise serve reload",     // is about one that does
	"mortise artifacts list",   // a session
	"mortise policy simulate",  // files
	"mortise recovery confirm", // a recovery
	"mortise models test",      // models
	"mortise feeds list",       // watches
	"mortise login",            // a host elsewhere
	"mortise console",          // a host that serves
	"mortise logout",           // likewise
	"mortise doctor",           // a machine that has everything
	"mortise hook claude-code", // the use of a tool on standard input
}

// TestExamplesRun runs the examples that need nothing but a data directory; the stories
// run the commands of the others.
func TestExamplesRun(t *testing.T) {
	home := t.TempDir()
	run := func(args ...string) (string, int) {
		var out, errs bytes.Buffer
		status := Main(append([]string{"--home", home}, args...), strings.NewReader(""), &out, &errs)
		return out.String() + errs.String(), status
	}
	t.Setenv("MORTISE_CONFIG", "")
	t.Setenv("HOME", t.TempDir()) // some write into the configuration of other programs
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if said, status := run("sessions", "create"); status != exitOK {
		t.Fatalf("the data directory cannot be made: %s", said)
	}
	_, root := newCommand()
	ran := 0
	for _, cmd := range leaves(root) {
		if slices.Contains(needy, cmd.CommandPath()) {
			continue
		}
		for _, line := range examplesOf(cmd) {
			_, root := newCommand()
			found, rest, _ := root.Find(line[1:])
			if found.CommandPath() != cmd.CommandPath() || found.ParseFlags(rest) != nil || found.Flags().NArg() > 0 {
				continue
			}
			ran++
			if said, status := run(line[1:]...); status != exitOK {
				t.Errorf("%q: status %d: %s", line, status, said)
			}
		}
	}
	t.Logf("%d examples ran", ran)
}

// TestIdsAreCutShortEverywhere holds the stories of cut ids against the commands that take
// one.
func TestIdsAreCutShortEverywhere(t *testing.T) {
	t.Parallel()
	var stories string
	for _, name := range []string{"ids", "ids_plans"} {
		raw, err := os.ReadFile("testdata/script/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		stories += string(raw)
	}
	_, root := newCommand()
	for _, cmd := range leaves(root) {
		noun := cmd.Parent().Name()
		takes := regexp.MustCompile(`ID|ARTIFACT|DOCUMENT`).MatchString(cmd.Use) && slices.Contains([]string{"calls", "approvals", "plans", "sessions", "artifacts", "feeds", "ledger"}, noun) ||
			noun == "kb" && strings.Contains(cmd.Use, "DOCUMENT")
		if takes && !regexp.MustCompile(`(?m)^exec sh (each|last)\.sh \$. `+cmd.CommandPath()+`\b`).MatchString(stories) {
			t.Errorf("%s is in no story of cut ids", cmd.CommandPath())
		}
	}
}
