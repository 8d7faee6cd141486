package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/relay"
	"github.com/mortise-dev/mortise/plugin"
)

// keep is the command that a command line starts for a session, so that what its
// plugins keep in memory outlives it.
func (c *command) keep() *cobra.Command {
	return &cobra.Command{
		Use:    "keep SESSION",
		Short:  "Hold the plugin processes of one session, for the command lines that use it",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return c.keepSession(cmd.Context(), args[0]) },
	}
}

func (c *command) keepSession(ctx context.Context, session string) error {
	if c.home == "" {
		return usage{errNoHome}
	}
	home, err := filepath.Abs(c.home)
	if err != nil {
		return err
	}
	cfg, configPath, err := setup.ReadConfig(home, c.config)
	if err != nil {
		return err
	}
	identity, err := c.identity(home, configPath)
	if err != nil {
		return err
	}
	var a *app.App
	k := &relay.Keeper{
		Place:    relay.Place{Home: home, Tenant: cfg.Tenant, Session: session},
		Identity: identity,
		Idle:     time.Duration(cfg.Processes.SessionIdle),
		Advance:  func(ctx context.Context, id string) error { return a.Kernel.Advance(ctx, cfg.Tenant, id) },
	}
	k.Call = func(ctx context.Context, principal string, call plugin.Call) (res plugin.Result, err error) {
		if call.Principal, err = a.Host.Guard().Member(principal); err != nil {
			return res, err
		}
		call.Asker = host.OSUser() // only its own user reaches the socket
		if err := a.CatchUp(ctx); err != nil {
			return res, err
		}
		res, err = a.Kernel.Call(ctx, call)
		// What is answered is on record, whatever becomes of the keeper.
		return res, errors.Join(err, a.Ledger.Flush(context.WithoutCancel(ctx)))
	}
	return k.Serve(ctx, func(ctx context.Context) (_ func() error, err error) {
		a, err = app.Open(ctx, app.Options{
			Home: home, Config: c.config, Database: c.databaseURL(), Scrubber: c.scrubber,
			Earlier: func(string, string) bool { return k.Earlier() },
		})
		if err != nil {
			return nil, err
		}
		return a.Close, nil
	})
}

// identity tells one host from another: the program, its configuration, its data
// directory, and what it is told by the environment. A keeper that is another
// host than the command line is replaced.
func (c *command) identity(home, configPath string) (string, error) {
	hash := sha256.New()
	add := func(what string, values ...any) { fmt.Fprintf(hash, "%s %q\n", what, fmt.Sprint(values...)) }

	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", plugin.Errorf(plugin.CodeUnavailable, "this program was replaced while it ran; run the command again (%w)", err)
	}
	add("program", program, " ", inode(info), " ", info.Size(), " ", info.ModTime().UnixNano())
	if info, err = os.Stat(home); err != nil {
		return "", err
	}
	add("home", home, " ", inode(info))
	text, err := os.ReadFile(configPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return "", err
	}
	add("configuration", configPath, " ", string(text))
	add("database", c.databaseURL())
	environment := os.Environ()
	slices.Sort(environment)
	for _, pair := range environment {
		if name, _, _ := strings.Cut(pair, "="); matters(name, string(text)) {
			add("environment", pair)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// inode tells a file from another that had its name.
func inode(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Dev, ":", stat.Ino)
	}
	return ""
}

// matters reports whether a variable of the environment changes what a host does:
// one that finds its programs, or one that the configuration names.
func matters(name, configuration string) bool {
	switch name {
	case "PATH", "HOME", "TMPDIR", "PYENV_ROOT", "NVM_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR":
		return true
	}
	return len(name) > 2 && regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(configuration)
}

// kept reports whether an operation keeps something in memory for the session
// of its call.
func kept(t *plugin.Target) bool {
	return t != nil && t.Manifest.Isolation == plugin.IsolationSession
}

// keeper returns a client of the process that holds a session.
func (c *command) keeper(ctx context.Context, a *app.App, session string) (*relay.Client, error) {
	identity, err := c.identity(a.Home, a.ConfigPath)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := relay.Starter{
		Place: relay.Place{Home: a.Home, Tenant: a.Config.Tenant, Session: session}, Identity: identity,
		Command: []string{program, "keep", session, "--home", a.Home},
	}
	for _, pair := range os.Environ() {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "MORTISE_HOME", "MORTISE_AS", "MORTISE_SESSION", "MORTISE_CONFIG", "MORTISE_DATABASE":
		default:
			s.Env = append(s.Env, pair)
		}
	}
	if c.config != "" {
		s.Command = append(s.Command, "--config", a.ConfigPath)
	}
	if url := c.databaseURL(); url != "" {
		s.Env = append(s.Env, "MORTISE_DATABASE="+url) // there may be a password in it
	}
	client, _, err := s.Connect(ctx)
	return client, err
}

// callKept has a call made by the process that holds its session.
func (c *command) callKept(ctx context.Context, a *app.App, t *plugin.Target, call plugin.Call) (res plugin.Result, err error) {
	a.Sandbox.Tell() // the process that holds the session says it to its log only
	for range 3 {    // one that ends at this moment is no reason to give up
		client, err := c.keeper(ctx, a, call.Session)
		if err != nil {
			return res, err
		}
		var sent bool
		res, sent, err = client.Call(ctx, principal.Name(call.Principal), call)
		if sent || ctx.Err() != nil || err == nil || !errors.Is(err, relay.ErrGone) && plugin.CodeOf(err) != plugin.CodeUnavailable {
			return res, lost(ctx, a, t, err)
		}
	}
	return res, plugin.Errorf(plugin.CodeUnavailable, "the process of session %s ended three times before it took the call; its log is in %s", call.Session, filepath.Join(a.Home, "keep"))
}

// lost turns the loss of a session process into outcome_unknown, if the call
// has effects.
func lost(ctx context.Context, a *app.App, t *plugin.Target, err error) error {
	if !errors.Is(err, relay.ErrLost) || len(t.Operation.Effects) == 0 {
		return err
	}
	if _, failed := a.Ledger.Recover(context.WithoutCancel(ctx)); failed != nil {
		return errors.Join(err, failed)
	}
	return plugin.Errorf(plugin.CodeOutcomeUnknown, "%s; what it had done by then is not known here", plugin.AsError(err).Message)
}

// advance resumes a queued call in the process that holds its session.
func (c *command) advance(ctx context.Context, a *app.App, row *store.CallRow) error {
	if row.Session == "" {
		return a.Kernel.Advance(ctx, row.Tenant, row.ID)
	}
	t, err := a.Registry.Resolve(ctx, row.Operation)
	if err != nil || !kept(t) {
		return a.Kernel.Advance(ctx, row.Tenant, row.ID)
	}
	client, err := c.keeper(ctx, a, row.Session)
	if err != nil {
		return err
	}
	_, err = client.Advance(ctx, row.ID)
	if errors.Is(err, relay.ErrGone) || errors.Is(err, relay.ErrLost) {
		return nil // the waiting caller polls, and finds another session process
	}
	return err
}
