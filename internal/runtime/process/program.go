package process

import (
	"context"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// program returns what to start for a plugin, and what that may read: by the
// host's word, and because something of the plugin's named it.
func (r *Runner) program(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (launch, error) {
	argv, err := r.opts.Command(ctx, pkg, m)
	if err != nil || r.Level() == string(sandbox.None) {
		return launch{argv: argv}, err
	}
	l := launch{argv: argv}
	named := []string{argv[0]}
	if r.opts.Reads != nil {
		more, err := r.opts.Reads(ctx, pkg, m, argv)
		if err != nil {
			return launch{}, err
		}
		named = append(named, more...)
	}
	if pkg.Dir != "" {
		l.read = append(l.read, pkg.Dir)
	}
	for _, path := range named {
		switch below, err := filepath.Rel(pkg.Dir, path); {
		case m.Runner.Binding != nil: // its command is the administrator's word
			l.read = append(l.read, path)
		case r.laidOut(path): // a linked plugin's directory may hold the data directory, which is hidden
			l.named = append(l.named, path)
		case pkg.Dir != "" && err == nil && filepath.IsLocal(below): // it is shown with the package, or leads out of it
		default:
			l.named = append(l.named, path)
		}
	}
	return l, nil
}

// laidOut reports whether a path is among what the host lays out for plugins itself.
func (r *Runner) laidOut(path string) bool {
	below, err := filepath.Rel(r.opts.Own, path)
	return r.opts.Own != "" && err == nil && filepath.IsLocal(below)
}
