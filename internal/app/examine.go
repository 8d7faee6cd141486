package app

import (
	"errors"

	"github.com/mortise-dev/mortise/internal/host/doctor"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// Examined returns this host as 'mortise doctor' looks at it.
func (a *App) Examined() *doctor.Host {
	return &doctor.Host{
		Store: a.Store, Writable: a.Writable, Registry: a.Registry, Plugins: a.As(a.Principal).Plugins(),
		Mapped: a.Config.Egress.Map, CAFile: a.Config.Egress.CAFile, Close: a.Close,
		Programs: func() (all []doctor.Program) {
			for _, f := range a.Interpreters.Found() {
				p := doctor.Program{Name: f.Name, Detail: f.Version + ", " + f.Real}
				if f.Problem != "" {
					p.Err = errors.New(f.Problem)
				}
				all = append(all, p)
			}
			for _, language := range []string{"python", "typescript"} { // for editors, and for the curious
				dir, err := a.Interpreters.SDK(language)
				all = append(all, doctor.Program{Name: "SDK, " + language, Detail: dir, Err: err})
			}
			return all
		},
		Walls: func() doctor.Walls {
			r := a.Sandbox.Report()
			w := doctor.Walls{Level: string(r.Level), Off: a.Config.Sandbox == string(sandbox.Off), Required: a.Config.Sandbox == string(sandbox.Required)}
			for _, l := range r.Layers {
				w.Walls = append(w.Walls, doctor.Wall{Name: l.Name, On: l.On, Why: l.Why})
			}
			return w
		},
	}
}
