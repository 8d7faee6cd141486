package sandbox

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// A Level says in one word how much of a cage there is.
type Level string

// The levels.
const (
	None    Level = "none"    // the program runs as any other of the host's user
	Partial Level = "partial" // files and system calls are walled off; some of what Full has is missing
	Full    Level = "full"    // every layer stands
)

// A Layer is one wall: whether it stands and, if it does not, why and what to
// do. A wall that stands may have a remark there too.
type Layer = wire.Layer

// A Report says which walls stand. Each was tried after it was put up.
type Report struct {
	Level  Level   `json:"level"`
	Layers []Layer `json:"layers"`
}

// The names of the layers.
const (
	LayerUser       = "user namespace"
	LayerMount      = "mount namespace"
	LayerPID        = "pid namespace"
	LayerNet        = "network namespace"
	LayerIPC        = "ipc namespace"
	LayerUTS        = "uts namespace"
	LayerLandlock   = "landlock"
	LayerSeccomp    = "seccomp"
	LayerCaps       = "capabilities"
	LayerPrivileges = "no new privileges"
	LayerLimits     = "resource limits"
	LayerMemory     = "memory limit"
	LayerProcesses  = "process limit"
)

// All are the layers of [Full], in the order they are shown.
var All = []string{
	LayerUser, LayerMount, LayerPID, LayerNet, LayerIPC, LayerUTS,
	LayerLandlock, LayerSeccomp, LayerCaps, LayerPrivileges, LayerLimits, LayerMemory, LayerProcesses,
}

// least are the layers without which there is no cage to speak of.
var least = []string{LayerLandlock, LayerSeccomp, LayerPrivileges, LayerLimits}

// reportOf orders layers and says what they come to. A layer of which nothing
// is known does not stand.
func reportOf(layers []Layer) Report {
	r := Report{Level: Full}
	for _, name := range All {
		layer := Layer{Name: name, Why: "it was not tried"}
		if i := slices.IndexFunc(layers, func(l Layer) bool { return l.Name == name }); i >= 0 {
			layer = layers[i]
		}
		r.Layers = append(r.Layers, layer)
		switch {
		case layer.On:
		case slices.Contains(least, name):
			r.Level = None
		case r.Level == Full:
			r.Level = Partial
		}
	}
	return r
}

// noReport is a report of nothing, for one reason.
func noReport(why string) Report {
	r := Report{Level: None}
	for _, name := range All {
		r.Layers = append(r.Layers, Layer{Name: name, Why: why})
	}
	return r
}

// stands reports whether a layer stands.
func (r Report) stands(name string) bool {
	return slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.Name == name && l.On })
}

// Missing returns the layers that do not stand.
func (r Report) Missing() []Layer {
	var missing []Layer
	for _, l := range r.Layers {
		if !l.On {
			missing = append(missing, l)
		}
	}
	return missing
}

// lacks says in words what is missing. Walls that are missing for one reason
// are named together.
func (r Report) lacks() string {
	var whys []string
	names := map[string][]string{}
	for _, l := range r.Missing() {
		if names[l.Why] == nil {
			whys = append(whys, l.Why)
		}
		names[l.Why] = append(names[l.Why], l.Name)
	}
	if len(whys) == 1 && len(names[whys[0]]) == len(All) {
		return "all of it (" + whys[0] + ")"
	}
	for i, why := range whys {
		whys[i] = strings.Join(names[why], ", ") + " (" + why + ")"
	}
	return strings.Join(whys, "; ")
}
