package secret_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/secret"
)

// A token of the API that someone put where it does not belong is in the log with its id
// alone, wherever it stands there; what only begins like one stays.
func TestTheLogTellsNoToken(t *testing.T) {
	t.Parallel()
	hidden := strings.Repeat("S", 32)
	token := "mrt_u0123456789_" + hidden + "_012345"
	var out bytes.Buffer
	log := slog.New(secret.NewScrubber().Handler(slog.NewTextHandler(&out, nil))).With("with", "/calls/"+token)
	log.Info("asked for "+token, "path", "/calls/"+token+"/events", "cause", errors.New("no "+token), slog.Group("of", "it", []byte(token+token)), "key "+token, 1, "other", "mrt_u0123456789_short")
	text := out.String()
	if strings.Contains(text, hidden) || strings.Count(text, "mrt_u0123456789_...") != 7 || !strings.Contains(text, "other=mrt_u0123456789_short") {
		t.Errorf("the log has %s", text)
	}
}
