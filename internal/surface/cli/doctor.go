package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// A finding is one thing that doctor looked at.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it the host cannot work
	Detail string `json:"detail"`
}

func (c *command) doctor() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:     "doctor",
		Short:   "Say what this machine has and what is missing",
		Example: "  mortise doctor",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var findings []finding
			err := c.during("looking at this machine", func() (err error) { findings, err = c.examine(cmd.Context()); return err })
			healthy := err == nil
			for _, f := range findings {
				healthy = healthy && (f.OK || !f.Needed)
			}
			if c.json {
				if err := c.print(map[string]any{"ok": healthy, "findings": findings}); err != nil {
					return err
				}
			} else {
				t := terminal.NewTable(c.out, "", "WHAT", "DETAIL")
				for _, f := range findings {
					mark := "ok"
					switch {
					case !f.OK && f.Needed:
						mark = "fail"
					case !f.OK:
						mark = "warn"
					}
					t.Row(mark, f.What, terminal.OneLine(f.Detail, 300))
				}
				if err := t.Flush(); err != nil {
					return err
				}
			}
			if !healthy {
				return reported{fmt.Errorf("this host cannot work here")}
			}
			return nil
		},
	})
}

// isolation says how far plugins are caged here: in a line, and then a line
// for each wall.
func isolation(r sandbox.Report, mode string) []finding {
	what := map[sandbox.Level]string{
		sandbox.Full:    "plugins see their own files alone, have no network, and are bounded in all they take",
		sandbox.Partial: "some walls are missing; see below",
		sandbox.None:    "plugins can do what the user of the host can",
	}[r.Level]
	required := mode == string(sandbox.Required) // then nothing is started without all of them
	if required && r.Level != sandbox.Full {
		what = "no plugin is started, as walls are missing; put them right, or write sandbox: best-effort in mortise.yaml"
	}
	findings := []finding{{"isolation of plugins", r.Level == sandbox.Full, required, string(r.Level) + ": " + what}}
	if mode == string(sandbox.Off) {
		findings[0].Detail += "; sandbox is off in mortise.yaml"
		return findings
	}
	for _, l := range r.Layers {
		detail := l.Why
		if detail == "" {
			detail = "stands"
		}
		findings = append(findings, finding{"cage, " + l.Name, l.On, required, detail})
	}
	return findings
}

// examine looks at everything that a host stands on.
func (c *command) examine(ctx context.Context) ([]finding, error) {
	var findings []finding
	add := func(what string, needed bool, err error, detail string) {
		if err != nil {
			detail = messageOf(err)
		}
		findings = append(findings, finding{what, err == nil, needed, detail})
	}
	home, err := filepath.Abs(c.home)
	if info, statErr := os.Stat(home); err == nil && statErr == nil && !info.IsDir() {
		err = fmt.Errorf("the data directory cannot be used: %s is no directory; --home or MORTISE_HOME names another", home)
	}
	add("data directory", true, err, home)
	if err != nil {
		return findings, err
	}
	_, path, err := setup.ReadConfig(c.home, c.config)
	if _, absent := os.Stat(path); absent != nil && err == nil {
		path = "defaults (there is no " + path + ")"
	}
	add("configuration", true, err, path)
	if err != nil {
		return findings, err
	}
	database, err := c.whichDatabase()
	about := ""
	if err == nil {
		about, err = setup.AboutDatabase(ctx, home, database)
	}
	add("database", true, err, about)
	if err != nil {
		return findings, err
	}
	if err := setup.CheckDatabase(ctx, home, database); err != nil {
		add("database is sound", true, err, "")
		return findings, err
	}
	// Before it is opened: then a host that finds an older copy writes that down.
	var report ledger.Report
	unread := c.reading(ctx, func(st store.Store) (err error) {
		report, err = c.verify(ctx, st)
		return err
	})
	a, err := c.open(ctx)
	add("database and ledger", true, err, "open, with the key in "+home)
	if err != nil {
		return findings, err
	}
	if unread != nil { // there was none, or it was of an older version
		report, err = c.verify(ctx, a.Store)
	}
	switch {
	case err == nil && report.Fault != nil:
		add("ledger verifies", true, fmt.Errorf("entry %d: %s", report.Fault.Seq, report.Fault.What), "")
	default:
		add("ledger verifies", true, err, fmt.Sprintf("%d entries", report.Entries))
	}
	add("database takes writes", true, a.Writable(ctx), "one reached the disk")
	if pid, why := setup.Serving(home); pid != 0 {
		var trouble error
		if why != "" {
			trouble = fmt.Errorf("process %d serves this directory and does not write its ledger: %s; it takes no more calls until it does", pid, why)
		}
		add("host at work", true, trouble, fmt.Sprintf("process %d serves this directory, and writes its ledger", pid))
	}
	for _, f := range a.Interpreters.Found() {
		detail := fmt.Sprintf("%s, %s", f.Version, f.Real)
		var missing error
		if f.Problem != "" {
			missing = fmt.Errorf("%s", f.Problem)
		}
		add(f.Name, false, missing, detail)
	}
	for _, language := range []string{"python", "typescript"} { // for editors, and for the curious
		dir, err := a.Interpreters.SDK(language)
		add("SDK, "+language, false, err, dir)
	}
	findings = append(findings, isolation(a.Sandbox.Report(), a.Config.Sandbox)...)
	if mapped := a.Config.Egress.Map; len(mapped) > 0 {
		var led []string
		for _, name := range slices.Sorted(maps.Keys(mapped)) {
			led = append(led, name+" to "+mapped[name])
		}
		detail := "mortise.yaml leads " + strings.Join(led, ", ")
		if a.Config.Egress.CAFile != "" {
			detail += "; also vouched for by " + a.Config.Egress.CAFile
		}
		add("hosts of plugins", false, nil, detail)
	}
	infos, err := a.Registry.List(ctx)
	broken := 0
	for _, i := range infos {
		if i.Problem != "" {
			broken++
		}
	}
	if broken > 0 && err == nil {
		err = fmt.Errorf("%d of %d are broken; 'mortise plugins list' shows which", broken, len(infos))
	}
	add("plugins", false, err, fmt.Sprintf("%d registered", len(infos)))
	halted, err := a.As(a.Principal).Plugins().Halted(ctx)
	if err == nil && len(halted) > 0 {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(halted)) {
			for _, h := range halted[name] {
				lines = append(lines, fmt.Sprintf("%s for agent %s ('%s' enables it again)", name, h.Agent, h.Enable))
			}
		}
		err = fmt.Errorf("disabled because their code could not be stopped otherwise: %s", strings.Join(lines[:min(len(lines), 10)], ", "))
	}
	add("plugins of agents", false, err, "none is disabled")
	add("shutting down", true, a.Close(), "no process left")
	return findings, nil
}
