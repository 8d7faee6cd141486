package kernel

import (
	"maps"

	"github.com/mortise-dev/mortise/plugin"
)

// made returns the artifacts of an answer: those that the plugin speaks of, and
// those that the host took in for it. Only these have an id, and are on record.
func (r *request) made(said []plugin.Artifact, services plugin.Services) []plugin.Artifact {
	for i := range said {
		said[i].ID = ""
	}
	maker, ok := services.(interface{ Artifacts() []plugin.Artifact })
	if !ok {
		return said
	}
	kept := maker.Artifacts()
	for _, a := range kept {
		r.record.Artifacts = append(r.record.Artifacts, a.ID)
	}
	return append(said, kept...)
}

// measured returns the figures of an answer: what the host counted itself stands
// in place of what the plugin says of it.
func measured(said plugin.Metrics, services plugin.Services) plugin.Metrics {
	delete(said, "http_mapped") // only the host knows where a request went
	meter, ok := services.(interface{ Metrics() plugin.Metrics })
	if !ok {
		return said
	}
	counted := meter.Metrics()
	if said == nil {
		return counted
	}
	maps.Copy(said, counted)
	return said
}

// A witness is services that tell what was asked of them.
type witness interface {
	Used() bool       // something outside the host
	Unsettled() bool  // an external effect whose outcome is unknown
	Starved() bool    // a service failed for a reason of the host's own
	Labels() []string // what the answer is tainted with for it
}
