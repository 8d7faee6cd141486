package config_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/config"
)

func TestQuotasAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"quotas: {zone: Europe/Berlin, default: {day: 5}, principals: {\"service::ci\": {month: 7}}, plugins: {mail: {minute: 1}, mail/send: {concurrent: 2}}, providers: {google: 3}}": "",
		"quotas: {zone: Europe/Nowhere}":            "quotas.zone",
		"quotas: {zone: Local}":                     "quotas.zone",
		"quotas: {default: {day: -1}}":              "quotas.default.day",
		"quotas: {default: {days: 1}}":              "days",
		"quotas: {plugins: {\"a/b/c\": {day: 1}}}":  "quotas.plugins",
		"quotas: {plugins: {mail: {minute: 1e9}}}":  "minute",
		"quotas: {providers: {google: 0}}":          "quotas.providers.google",
		"quotas: {principals: {\"robot::x\": {}}}":  "quotas.principals",
		"quotas: {principals: {\"agent:x\": {}}}":   "quotas.principals",
		"quotas: {default: {month: 9999999999999}}": "quotas.default.month",
	} {
		_, err := config.Parse([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
