package config

import (
	"fmt"
	"net/url"
)

// Telemetry says what 'mortise serve' tells of itself to the systems that watch it. By
// default it is nothing.
type Telemetry struct {
	Traces  string  `yaml:"traces" json:"traces"`   // the URL of a collector of OTLP over HTTP
	Sample  float64 `yaml:"sample" json:"sample"`   // the share of traces that begin here and are sent
	Metrics bool    `yaml:"metrics" json:"metrics"` // at /metrics
}

func (t Telemetry) check() []error {
	var errs []error
	if u, err := url.Parse(t.Traces); t.Traces != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		errs = append(errs, fmt.Errorf("telemetry.traces is %q; it is the URL of a collector, like http://127.0.0.1:4318", t.Traces))
	}
	if !(t.Sample >= 0 && t.Sample <= 1) {
		errs = append(errs, fmt.Errorf("telemetry.sample is %v; it is a share, 0 to 1", t.Sample))
	}
	return errs
}
