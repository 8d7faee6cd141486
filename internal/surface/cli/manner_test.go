package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/alive"
	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/surface/cli"
)

// The manners in which stories are told. In the last two each story has a `mortise serve` of
// its own, which the command mortise of the story starts when it is first asked something, and
// again where the configuration changed.
const (
	embedded = "embedded"
	socket   = "socket"
	url      = "url"
)

// mannerOf names the manner to the command mortise.
const mannerOf = "MORTISE_TEST_MANNER"

// mortise is the command of the stories.
func mortise() int {
	manner := os.Getenv(mannerOf)
	os.Unsetenv(mannerOf)
	args := os.Args[1:]
	if manner == socket || manner == url {
		w := &world{manner: manner, args: args}
		if err := w.prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "the host of the story:", err)
			return 99
		}
		args = w.args
	}
	return cli.Main(args, os.Stdin, os.Stdout, os.Stderr)
}

// A world is one command line of a story, and the host that it is for.
type world struct {
	manner, home string
	args         []string
}

// alone are the commands for which no host may serve, or which need none.
var alone = map[string]bool{"serve": true, "restore": true, "backup": true, "doctor": true}

// asking are the commands that may ask the host that serves.
var asking = []string{
	"run", "calls", "approvals", "plans", "ledger", "sessions", "artifacts", "route",
	"plugins", "plugin", "agents", "agent", "chat", "feeds", "kb", "reference", "policy", "identities", "users", "tenants", "tokens", "secrets", "connect", "accounts", "models",
	"adapters", "recovery", "retention", "erase",
}

// prepare sees to it that the host of the story serves as it is configured now, or not at all.
func (w *world) prepare() error {
	word := ""
	for i := 0; i < len(w.args); i++ {
		if arg := w.args[i]; !strings.HasPrefix(arg, "-") {
			word = arg
			break
		} else if takesValue[arg] {
			i++
		}
	}
	w.home = cmpOr(w.flag("--home"), os.Getenv("MORTISE_HOME"))
	if w.home == "" || slices.Contains(w.args, "--help") || slices.Contains(w.args, "-h") {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(w.home)); err != nil || !info.IsDir() {
		return nil
	}
	lock, err := filelock.Acquire(w.home + ".story.lock")
	if err != nil {
		return nil // a story about a place that cannot be written
	}
	defer lock.Release()
	if alone[word] {
		return w.stop()
	}
	if !slices.Contains(asking, word) || strings.Contains(" "+strings.Join(w.args, " "), " ledger verify") || w.manner == url && strings.Contains(" "+strings.Join(w.args, " "), " plugins register") {
		return nil
	}
	config := cmpOr(w.flag("--config"), os.Getenv("MORTISE_CONFIG"), filepath.Join(w.home, "mortise.yaml"))
	text, _ := os.ReadFile(config)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", config, cmpOr(w.flag("--database"), os.Getenv("MORTISE_DATABASE")), text))
	key := hex.EncodeToString(sum[:])
	var is served
	if raw, err := os.ReadFile(w.home + ".story"); err == nil && json.Unmarshal(raw, &is) == nil && is.Key == key && alive.Process(is.PID) {
		return w.aim(is)
	}
	if err := w.stop(); err != nil {
		return err
	}
	if is, err = w.start(config); err != nil {
		return nil // it cannot be served so: the command says what is wrong
	}
	is.Key = key
	raw, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if err := os.WriteFile(w.home+".story", raw, 0o600); err != nil {
		return err
	}
	return w.aim(is)
}

// A served is a host that serves for a story.
type served struct {
	Key string `json:"key"`
	PID int    `json:"pid"`
	URL string `json:"url"`
}

var takesValue = map[string]bool{"--home": true, "--config": true, "--as": true, "--database": true, "--server": true}

// flag returns the value of a flag of the program.
func (w *world) flag(name string) string {
	for i, arg := range w.args {
		if arg == "--" {
			break
		}
		if value, is := strings.CutPrefix(arg, name+"="); is {
			return value
		}
		if arg == name && i+1 < len(w.args) {
			return w.args[i+1]
		}
	}
	return ""
}

func cmpOr(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// start starts a host, and waits until it answers.
func (w *world) start(config string) (is served, err error) {
	args := []string{"--home", w.home, "serve", "--listen", "127.0.0.1:0"}
	if _, err := os.Stat(config); err == nil {
		args = append([]string{"--config", config}, args...)
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(one string) bool { return strings.HasPrefix(one, "MORTISE_AS=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	log, err := os.Create(w.home + ".story.log")
	if err != nil {
		return is, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return is, err
	}
	is.PID = cmd.Process.Pid
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	for {
		select {
		case err := <-gone:
			return is, fmt.Errorf("it ended: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		text, _ := os.ReadFile(log.Name())
		if !bytes.Contains(text, []byte("Ctrl-C stops")) {
			continue
		}
		if found := listening.FindSubmatch(text); found != nil {
			is.URL = string(found[1])
			return is, nil
		}
	}
}

var listening = regexp.MustCompile(`listening on (http://\S+)`)

// stop ends the host of the story, and waits for that.
func (w *world) stop() error {
	raw, err := os.ReadFile(w.home + ".story")
	if err != nil {
		return nil
	}
	var is served
	if err := json.Unmarshal(raw, &is); err != nil {
		return err
	}
	os.Remove(w.home + ".story")
	_ = syscall.Kill(is.PID, syscall.SIGTERM)
	poll(func() bool { return !alive.Process(is.PID) })
	return nil
}

// aim makes the command line one for the host, in the manner of the story.
func (w *world) aim(is served) error {
	if w.manner == socket || w.ofMachine() {
		return nil
	}
	as := cmpOr(w.flag("--as"), os.Getenv("MORTISE_AS"))
	token, err := w.token(as)
	if err != nil {
		return nil // the name is of no one: the command says so
	}
	os.Unsetenv("MORTISE_AS")
	for i := 0; i < len(w.args); i++ {
		switch arg := w.args[i]; {
		case arg == "--":
			i = len(w.args)
		case strings.HasPrefix(arg, "--as="):
			w.args = slices.Delete(w.args, i, i+1)
			i--
		case arg == "--as":
			w.args = slices.Delete(w.args, i, i+2)
			i--
		}
	}
	os.Setenv("MORTISE_SERVER", is.URL)
	os.Setenv("MORTISE_TOKEN", token)
	return nil
}

// ofMachine reports whether the command line names files of the host's machine, or its data
// directory: at a URL it is an error, and the story goes on over the socket.
func (w *world) ofMachine() bool {
	line := strings.Join(w.args, " ")
	return strings.Contains(line, "plugins register ") || strings.Contains(line, "plugin register ") || strings.Contains(line, "policy check") || strings.Contains(line, "--os-user") || strings.Contains(line, "secrets rotate") || strings.Contains(line, "secrets delete --all")
}

// token returns a token of a principal, the owner where as is empty.
func (w *world) token(as string) (string, error) {
	path := w.home + ".story.token." + hex.EncodeToString([]byte(as))
	if raw, err := os.ReadFile(path); err == nil {
		return string(raw), nil
	}
	dial := net.Dialer{}
	ask := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial.DialContext(ctx, "unix", filepath.Join(w.home, "run", "owner.sock"))
	}}}
	body := map[string]any{"name": "of the story", "scopes": []string{"admin"}, "no_expiry": true}
	if as != "" {
		body["for"] = as
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	res, err := ask.Post("http://localhost/api/v1/tokens", "application/json", bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	var made struct {
		Token string `json:"token"`
	}
	if err := errors.Join(err, json.Unmarshal(text, &made)); err != nil || made.Token == "" {
		return "", fmt.Errorf("%s: %s %v", res.Status, text, err)
	}
	return made.Token, os.WriteFile(path, []byte(made.Token), 0o600)
}

// TestStoriesOverTheSocket and TestStoriesAtAURL run the stories with a host that serves.
func TestStoriesOverTheSocket(t *testing.T) { stories(t, socket) }

func TestStoriesAtAURL(t *testing.T) { stories(t, url) }

// covering are stories in which every noun is: with -short the socket has these alone, and a URL
// those of atURL, since both are asked in the same way.
var covering = []string{
	"approvals", "artifact", "artifacts", "calls", "calls_settle", "dry_run", "exit_codes", "ids", "ids_plans", "input", "json", "key", "ledger", "plans",
	"adapters", "agents", "agents_plugins", "approve", "chat", "chat_pipe", "feeds", "kb", "models", "policy_stored", "reference", "register", "rollback", "secrets", "tenants", "tokens", "users",
	"progress", "route", "run_name", "run_path", "session_calls", "sessions", "set", "wait_key", "watch",
}

// atURL are those of them in which a token, a listener or a file of another machine matters.
var atURL = []string{
	"approvals", "artifact", "artifacts", "calls", "exit_codes", "feeds", "json", "kb", "key", "policy_stored", "register", "secrets", "sessions", "tenants", "tokens",
	"users", "watch",
}

// serving returns the host that serves a data directory for a story, 0 where none does.
func serving(home string) int {
	var is served
	if raw, err := os.ReadFile(home + ".story"); err != nil || json.Unmarshal(raw, &is) != nil || !alive.Process(is.PID) {
		return 0
	}
	return is.PID
}

// hosts ends the hosts of a story.
func hosts(dir string) {
	found, _ := filepath.Glob(filepath.Join(dir, "*.story"))
	for _, path := range found {
		w := &world{home: strings.TrimSuffix(path, ".story")}
		if raw, err := os.ReadFile(path); err == nil {
			var is served
			if json.Unmarshal(raw, &is) == nil && is.PID > 0 {
				_ = w.stop()
				_ = syscall.Kill(is.PID, syscall.SIGKILL)
			}
		}
	}
}
