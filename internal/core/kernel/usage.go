package kernel

import (
	"maps"

	"github.com/mortise-dev/mortise/plugin"
)

// account completes an answer with what the host knows the call to have used. Of the
// artifacts of an answer only those have an id that the host itself registered, and what
// the host counted stands in place of what the plugin says of it.
func (a *attempt) account(res *plugin.Result) {
	for i := range res.Artifacts {
		res.Artifacts[i].ID = ""
	}
	registered := a.usage.Artifacts()
	for _, artifact := range registered {
		a.record.Artifacts = append(a.record.Artifacts, artifact.ID)
	}
	res.Artifacts = append(res.Artifacts, registered...)
	counted := a.usage.Metrics()
	res.Metrics = metrics(res.Metrics, counted)
	a.sampled = sampled(counted)
}

// metrics returns the figures of an answer: said by the plugin, and counted by the host.
func metrics(said, counted plugin.Metrics) plugin.Metrics {
	delete(said, "http_mapped") // only the host knows where a request went
	if said == nil {
		return counted
	}
	maps.Copy(said, counted)
	return said
}
