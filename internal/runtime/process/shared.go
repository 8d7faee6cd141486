package process

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// sharesProcess reports whether one process serves all plugins of a package, one
// call at a time: the tools of Event Mill keep what one of them leaves for the
// next in the memory of their interpreter. Such a process tells no names in its
// handshake, since it loads a tool when it is first called.
func sharesProcess(m *plugin.Manifest) bool { return m.Contract.SharesProcess }

// toolsName is what messages call such a process, where they do not speak of a call.
const toolsName = "the tools of the package"

// name is what messages call a process of the group.
func (g *group) name() string {
	if sharesProcess(g.manifest) {
		return toolsName
	}
	return cmp.Or(g.manifest.Name, g.manifest.Runner.Entry, "the plugin") // code that has not been queried yet may be all there is
}

// of gives an error of a process that serves several plugins the name of the
// one that was called.
func of(target *plugin.Target, err error) error {
	if err == nil || !sharesProcess(target.Manifest) {
		return err
	}
	var e *plugin.Error
	if !errors.As(err, &e) {
		return err
	}
	rest, ours := strings.CutPrefix(e.Message, toolsName+": ")
	if !ours {
		return err
	}
	copied := *e // others may read it
	copied.Message = target.Manifest.Name + ": " + rest
	var reached interface{ Sent() bool }
	switch {
	case !errors.As(err, &reached):
		return &copied
	case reached.Sent():
		return &interrupted{&copied}
	default:
		return &unsent{&copied}
	}
}

// brief cuts a summary to what the contract of the plugin gives a model, unless
// a person at a command line reads it: they get it as it is.
func brief(res *plugin.Result, target *plugin.Target, call *plugin.Call) {
	maxSummary := target.Manifest.Contract.MaxSummary
	if maxSummary == 0 || call.Origin == plugin.OriginCLI || call.Whole || len(res.Summary) <= maxSummary {
		return
	}
	if text := []rune(res.Summary); len(text) > maxSummary {
		res.Summary = string(text[:maxSummary-3]) + "..."
	}
}

// An attacher is services that read what a plugin writes into its scratch
// directory. It must not keep the files longer than the call.
type attacher interface {
	// Attach gives it the files, and the path by which the plugin knows them.
	Attach(scratch fs.FS, dir string)
}

// attach lets the services of a call read the scratch directory, if they want to.
func (w *worker) attach(services plugin.Services) {
	if a, ok := services.(attacher); ok {
		a.Attach(w.child.files(), w.child.scratch)
	}
}
