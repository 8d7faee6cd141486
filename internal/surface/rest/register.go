package rest

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/internal/host"
)

// A RegisterSpec is a path whose plugins are to be registered.
type RegisterSpec struct {
	Path        string `json:"path" minLength:"1" maxLength:"4096" doc:"Of a directory, a tree of them or a package file on the host's machine, absolute."`
	Dev         bool   `json:"dev,omitzero" doc:"Link the files in place of copying them."`
	Enable      bool   `json:"enable,omitzero"`
	Force       bool   `json:"force,omitzero" doc:"Replace a version that is there with other files."`
	ID          string `json:"id,omitzero" maxLength:"128" doc:"What the one plugin there must be called."`
	DisplayName string `json:"display_name,omitzero" maxLength:"256" doc:"In place of the manifest's, as the description."`
	Description string `json:"description,omitzero" maxLength:"4096"`
}

// PluginsRegistered is what became of each plugin under a path.
type PluginsRegistered struct {
	Named      string             `json:"named,omitzero" doc:"The directory that was registered."`
	Registered []PluginRegistered `json:"registered" nullable:"false"`
	Failed     []PluginFailed     `json:"failed" nullable:"false"`
	Error      *Failure           `json:"error,omitzero" doc:"Why none could be registered."`
}

// A PluginRegistered is a plugin that is in the catalog now.
type PluginRegistered struct {
	Plugin
	Unchanged  bool     `json:"unchanged" doc:"It was there already, with these very files."`
	NotEnabled *Failure `json:"not_enabled,omitzero" doc:"Why it was not enabled, where that was asked for."`
}

// A PluginFailed is a plugin that was not registered.
type PluginFailed struct {
	Path     string          `json:"path"`
	Error    Failure         `json:"error"`
	Problems []PluginProblem `json:"problems" nullable:"false" doc:"Places of its manifest."`
}

// A PluginProblem is one thing that is wrong with a manifest.
type PluginProblem host.Problem

func (r *registry) registering() {
	add(r, route{
		method: "POST", path: "plugins:register", id: "register-plugins", scope: host.ScopeConfigure, stays: true,
		about: "Register the plugin at a path of the host's machine, or a tree of them; on the owner's socket alone",
	}, r.registerPlugins)
}

// failed is an error as a member of an answer, with what it says of the command line.
func failed(err error) *Failure {
	if err == nil {
		return nil
	}
	e := host.AsError(err)
	text, hint := hinted(e.Message)
	return &Failure{Code: e.Code, PluginCode: e.PluginCode, Message: text, Details: e.Details, Retryable: e.Retryable, RetryAfter: e.RetryAfter.Milliseconds(), Hint: hint}
}

func (r *registry) registerPlugins(ctx context.Context, q *request, in *struct{ Body RegisterSpec }) (*struct{ Body PluginsRegistered }, error) {
	b := &in.Body
	if err := q.ofOwner("/path", b.Path); err != nil {
		return nil, err
	}
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	report, err := q.api.Plugins().Register(ctx, b.Path, host.RegisterOptions{Dev: b.Dev, Enable: b.Enable, Force: b.Force, ID: b.ID, DisplayName: b.DisplayName, Description: b.Description})
	if err != nil && len(report.Registered) == 0 && len(report.Failed) == 0 {
		return nil, err
	}
	out := PluginsRegistered{Named: report.Named, Registered: []PluginRegistered{}, Failed: []PluginFailed{}, Error: failed(err)}
	for _, one := range report.Registered {
		out.Registered = append(out.Registered, PluginRegistered{q.pluginOf(&one.Info), one.Unchanged, failed(one.NotEnabled)})
	}
	for _, one := range report.Failed {
		f := PluginFailed{one.Path, *failed(one.Err), []PluginProblem{}}
		var problems host.Problems
		errors.As(one.Err, &problems)
		for _, p := range problems {
			f.Problems = append(f.Problems, PluginProblem(p))
		}
		out.Failed = append(out.Failed, f)
	}
	return &struct{ Body PluginsRegistered }{out}, nil
}
