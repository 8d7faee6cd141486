package setup

import (
	"maps"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/quota"
	"github.com/mortise-dev/mortise/internal/host/config"
)

// OpenQuotas returns the quotas of a configuration that was checked. Days and months begin by now,
// the clock that the counts have.
func OpenQuotas(c config.Quotas, counts quota.Counts, now func() time.Time) *quota.Quotas {
	rules := QuotaRules(c)
	return quota.New(quota.Options{Counts: counts, Now: now, Rules: func(string) *quota.Rules { return rules }})
}

// QuotaRules returns the rules of a configuration that was checked, nil where it bounds nothing.
func QuotaRules(c config.Quotas) *quota.Rules {
	zone, err := c.Location()
	if err != nil {
		zone = nil // the configuration was checked: it is UTC
	}
	rules := &quota.Rules{Total: quota.Bound(c.Total), Zone: zone, Default: quota.Bound(c.Default), Principals: map[string]quota.Bound{}, Plugins: map[string]quota.Bound{}, Providers: maps.Clone(c.Providers)}
	for name, bound := range c.Principals {
		rules.Principals[principal.Parse(name).Member()] = quota.Bound(bound)
	}
	for name, bound := range c.Plugins {
		rules.Plugins[name] = quota.Bound(bound)
	}
	if rules.Total == (quota.Bound{}) && rules.Default == (quota.Bound{}) && len(rules.Principals)+len(rules.Plugins)+len(rules.Providers) == 0 {
		return nil
	}
	return rules
}
