package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
)

func TestForHowLongWhatIsOfAgentsIsKept(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("agents: {idle: 2h}"))
	if err != nil || time.Duration(c.Agents.Idle) != 2*time.Hour || time.Duration(c.Agents.Deliveries) != 90*24*time.Hour {
		t.Errorf("%+v, %v", c.Agents, err)
	}
	for text, want := range map[string]string{
		"agents: {idle: 1s}":             "agents.idle is 1s; it is at least 1m0s",
		"agents: {deliveries: 1h}":       "agents.deliveries is 1h0m0s; it is at least 72h0m0s",
		"agents: {deliveries: 1000000h}": "agents.deliveries is 1000000h0m0s",
		"agents: {other: 1h}":            "other",
	} {
		if _, err := config.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
