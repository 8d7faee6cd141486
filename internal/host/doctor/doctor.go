// Package doctor examines everything that a host stands on: its data directory,
// configuration and database, its ledger, its interpreters, its sandbox and its plugins.
package doctor

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
)

// A Finding is one thing that was looked at.
type Finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it the host cannot work
	Detail string `json:"detail"` // what is there, where nothing is wrong
	Err    error  `json:"-"`      // what is wrong
}

// Healthy reports whether a host can work where these were found.
func Healthy(found []Finding) bool {
	return !slices.ContainsFunc(found, func(f Finding) bool { return f.Needed && !f.OK })
}

// A Subject is the host that is examined.
type Subject struct {
	Home     string // the data directory
	Config   string // the configuration file that was named, "" for the one in Home
	Database string // the database that was asked for, "" for the configured one

	Read func(ctx context.Context, do func(store.Store) error) error // what is kept, without a host
	Open func(ctx context.Context) (*Host, error)
}

// A Host is one that was opened to be examined.
type Host struct {
	Store    store.Store
	Writable func(context.Context) error // nil if a write reaches the disk
	Programs func() []Program            // interpreters, and what is there for those who write plugins
	Walls    func() Walls
	Registry *registry.Registry
	Plugins  host.Plugins
	Mapped   map[string]string // hosts that plugins are led away from, and where to
	CAFile   string
	Close    func() error
}

// A Program is something that plugins are run with.
type Program struct {
	Name, Detail string
	Err          error
}

// Walls are what stands between plugins and the machine.
type Walls struct {
	Level    string // full, partial or none
	Off      bool   // the configuration asks for none
	Required bool   // nothing is started without all of them
	Walls    []Wall
}

// A Wall is one of them.
type Wall struct {
	Name string
	On   bool
	Why  string // it does not stand; "" where it does
}

// An examination is one on its way.
type examination struct {
	Subject
	findings
}

// findings are what was found so far.
type findings struct{ found []Finding }

func (f *findings) add(what string, needed bool, err error, detail string) {
	f.found = append(f.found, Finding{what, err == nil, needed, detail, err})
}

// Examine returns what was found, up to what stands in the way of looking further.
func Examine(ctx context.Context, s Subject) ([]Finding, error) {
	e := &examination{Subject: s}
	report, unread, err := e.closed(ctx)
	if err != nil {
		return e.found, err
	}
	h, err := s.Open(ctx)
	e.add("database and ledger", true, err, "open, with the key in "+e.Home)
	if err != nil {
		return e.found, err
	}
	if unread != nil { // there was none, or it was of an older version
		report, unread = ledger.VerifyHome(ctx, h.Store, e.Home)
	}
	e.ledger(report, unread)
	e.add("database takes writes", true, h.Writable(ctx), "one reached the disk")
	e.clock(h.Store)
	e.calls(ctx, h.Store)
	e.tenants(ctx, h.Store)
	e.serving(ctx)
	e.backups()
	e.contents()
	for _, p := range h.Programs() {
		e.add(p.Name, false, p.Err, p.Detail)
	}
	e.isolation(h.Walls())
	e.mapped(h)
	e.plugins(ctx, h)
	e.add("shutting down", true, h.Close(), "no process left")
	return e.found, nil
}

// closed examines what is there before a host is opened. A ledger that cannot be read
// yet is unread; it is read first because a host that finds an older copy writes that down.
func (e *examination) closed(ctx context.Context) (report ledger.Report, unread, err error) {
	if e.Home, err = filepath.Abs(e.Home); err == nil {
		if info, statErr := os.Stat(e.Home); statErr == nil && !info.IsDir() {
			err = fmt.Errorf("the data directory cannot be used: %s is no directory; --home or MORTISE_HOME names another", e.Home)
		}
	}
	e.add("data directory", true, err, e.Home)
	if err != nil {
		return report, nil, err
	}
	conf, path, err := setup.ReadConfig(e.Home, e.Config)
	if _, absent := os.Stat(path); absent != nil && err == nil {
		path = "defaults (there is no " + path + ")"
	}
	e.add("configuration", true, err, path)
	if err != nil {
		return report, nil, err
	}
	e.certificate(conf.Server)
	database, err := setup.ChooseDatabase(e.Database, conf.Database)
	about := ""
	if err == nil {
		about, err = setup.AboutDatabase(ctx, e.Home, database)
	}
	e.add("database", true, err, about)
	if err != nil {
		return report, nil, err
	}
	if wall, err := setup.Wall(ctx, database); wall != "" || err != nil {
		e.add("row-level security", false, err, wall)
	}
	if err := setup.CheckDatabase(ctx, e.Home, database); err != nil {
		e.add("database is sound", true, err, "")
		return report, nil, err
	}
	unread = e.Read(ctx, func(st store.Store) (err error) {
		report, err = ledger.VerifyHome(ctx, st, e.Home)
		return err
	})
	return report, unread, nil
}

func (e *examination) ledger(report ledger.Report, err error) {
	if err == nil && report.Fault != nil {
		err = fmt.Errorf("entry %d: %s", report.Fault.Seq, report.Fault.What)
	}
	e.add("ledger verifies", true, err, fmt.Sprintf("%d entries", report.Entries))
}

func (e *examination) serving(ctx context.Context) {
	pid, why := setup.Serving(e.Home)
	if pid == 0 {
		return
	}
	var trouble error
	if why != "" {
		trouble = fmt.Errorf("process %d serves this directory and does not write its ledger: %s; it takes no more calls until it does", pid, why)
	}
	e.add("host at work", true, trouble, fmt.Sprintf("process %d serves this directory, and writes its ledger", pid))
	path, err := socket.Owner(e.Home)
	if err != nil {
		e.add("owner's socket", false, err, "")
		return
	}
	found, err := ExamineServer(ctx, Server{URL: "http://localhost", Owner: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}})
	if err != nil {
		e.add("owner's socket", false, err, "")
	}
	for _, f := range found {
		f.What, f.Needed = "owner's socket, "+f.What, false // other processes can work beside it
		e.found = append(e.found, f)
	}
}

// isolation says how far plugins are caged here: in a line, and then a line for each wall.
func (e *examination) isolation(w Walls) {
	what := map[string]string{
		"full":    "plugins see their own files alone, have no network, and are bounded in all they take",
		"partial": "some walls are missing; see below",
		"none":    "plugins can do what the user of the host can",
	}[w.Level]
	whole := w.Level == "full"
	if w.Required && !whole {
		what = "no plugin is started, as walls are missing; put them right, or write sandbox: best-effort in mortise.yaml"
	}
	f := Finding{What: "isolation of plugins", OK: whole, Needed: w.Required, Detail: w.Level + ": " + what}
	if w.Off {
		f.Detail += "; sandbox is off in mortise.yaml"
		e.found = append(e.found, f)
		return
	}
	e.found = append(e.found, f)
	for _, wall := range w.Walls {
		detail := wall.Why
		if detail == "" {
			detail = "stands"
		}
		e.found = append(e.found, Finding{What: "cage, " + wall.Name, OK: wall.On, Needed: w.Required, Detail: detail})
	}
}

func (e *examination) mapped(h *Host) {
	if len(h.Mapped) == 0 {
		return
	}
	var led []string
	for _, name := range slices.Sorted(maps.Keys(h.Mapped)) {
		led = append(led, name+" to "+h.Mapped[name])
	}
	detail := "mortise.yaml leads " + strings.Join(led, ", ")
	if h.CAFile != "" {
		detail += "; also vouched for by " + h.CAFile
	}
	e.add("hosts of plugins", false, nil, detail)
}

// maxNamed is how many disabled plugins are named.
const maxNamed = 10

func (e *examination) plugins(ctx context.Context, h *Host) {
	infos, err := h.Registry.List(ctx)
	broken := 0
	for _, i := range infos {
		if i.Problem != "" {
			broken++
		}
	}
	if broken > 0 && err == nil {
		err = fmt.Errorf("%d of %d are broken; 'mortise plugins list' shows which", broken, len(infos))
	}
	e.add("plugins", false, err, fmt.Sprintf("%d registered", len(infos)))
	halted, err := h.Plugins.Halted(ctx)
	if err == nil && len(halted) > 0 {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(halted)) {
			for _, halt := range halted[name] {
				lines = append(lines, fmt.Sprintf("%s for agent %s ('%s' enables it again)", name, halt.Agent, halt.Enable))
			}
		}
		err = fmt.Errorf("disabled because their code could not be stopped otherwise: %s", strings.Join(lines[:min(len(lines), maxNamed)], ", "))
	}
	e.add("plugins of agents", false, err, "none is disabled")
}

// tenants says which tenants have no directory, and so are not served.
func (e *examination) tenants(ctx context.Context, st store.Store) {
	rows, err := st.Tenants(store.Everywhere(ctx))
	var missing []string
	for _, row := range rows {
		if info, statErr := os.Stat(host.TenantDir(e.Home, row.Name)); row.DisabledAt.IsZero() && (statErr != nil || !info.IsDir()) {
			missing = append(missing, row.Name)
		}
	}
	if len(rows) == 0 && err == nil {
		return
	}
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("not served, as their directories in %s are missing: %s; put them back from a backup", host.TenantDir(e.Home, ""), strings.Join(missing[:min(len(missing), maxStrange)], ", "))
	}
	e.add("tenants", false, err, fmt.Sprintf("%d beside the site's own", len(rows)))
}

const (
	overdueAfter = 5 * time.Minute  // how long a call that is due may wait for a host
	clockBound   = 30 * time.Second // how far a clock may be off
)

// calls names the calls that are due and that no host goes on with, and those that a node with a
// wrong clock accepted: they wait until that time.
func (e *examination) calls(ctx context.Context, st store.Store) {
	late, err := overdue(ctx, st)
	if err == nil && len(late) > 0 {
		err = fmt.Errorf("%s; a host that serves goes on with them: 'mortise serve'", strings.Join(late, ", "))
	}
	e.add("calls on time", false, err, "none is overdue")
}

// overdue returns what is said of each such call, of no more than maxNamed.
func overdue(ctx context.Context, st store.Store) (late []string, err error) {
	now := st.Now()
	due, err := st.Calls(ctx, store.CallFilter{DueBefore: now.Add(-overdueAfter), Limit: maxNamed})
	if err != nil {
		return nil, err
	}
	for _, row := range due {
		late = append(late, fmt.Sprintf("call %s of %s is due since %s", row.ID, row.Operation, row.WakeAt.UTC().Format(time.RFC3339)))
	}
	newest, err := st.Calls(ctx, store.CallFilter{Live: true, Limit: maxNamed}) // such calls are the newest
	for _, row := range newest {
		if row.CreatedAt.After(now.Add(clockBound)) && len(late) < maxNamed {
			late = append(late, fmt.Sprintf("call %s of %s was accepted by a node whose clock was ahead, at %s", row.ID, row.Operation, row.CreatedAt.UTC().Format(time.RFC3339)))
		}
	}
	return late, err
}

// clock says if the clock of this machine is not that of its database. Nodes compare the times of
// the database; certificates and sign-ins go by this machine's.
func (e *examination) clock(st store.Store) {
	off := time.Now().Sub(st.Now()).Round(time.Second)
	if off.Abs() <= clockBound {
		return
	}
	way := "ahead of"
	if off < 0 {
		way = "behind"
	}
	e.add("clock of this machine", false, fmt.Errorf("it is %s %s that of the database; set it by NTP", off.Abs(), way), "")
}
