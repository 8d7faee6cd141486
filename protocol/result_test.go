package protocol_test

import (
	"testing"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Whatever a plugin says beside its answer, in whatever shape, is kept as it is.
func TestWhatAPluginSaysBesideItsAnswerIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, message, details, outputs string }{
		{`{"status":"succeeded","message":"done","details":{"n":[1]},"output_artifacts":[{"x":null}]}`, "done", `{"n":[1]}`, `[{"x":null}]`},
		{`{"status":"succeeded","details":"text","output_artifacts":{"a":1}}`, "", `"text"`, `{"a":1}`},
		{`{"status":"succeeded","message":null,"details":null,"output_artifacts":null}`, "", "", ""},
		{`{"status":"failed","error":{"code":"plugin_error","message":"no"},"message":"half","output_artifacts":[1]}`, "half", "", "[1]"},
	} {
		res, _, err := protocol.ParseResult([]byte(c.raw))
		if err != nil || res.Message != c.message || string(res.Details) != c.details || string(res.Outputs) != c.outputs {
			t.Errorf("%s: %+v, %v", c.raw, res, err)
		}
	}
	if _, _, err := protocol.ParseResult([]byte(`{"status":"succeeded","message":1}`)); err == nil {
		t.Error("a message that is no text is let through")
	}
	res, failure, err := protocol.ParseResult([]byte(`{"status":"failed","data":{"a":1},"error":{"code":"plugin_error","plugin_code":"ARTIFACT_NOT_FOUND","message":"no","details":{"n":1}}}`))
	if err != nil || failure == nil || failure.Code != plugin.CodePluginError || failure.PluginCode != "ARTIFACT_NOT_FOUND" || string(res.Data) != `{"a":1}` {
		t.Errorf("%+v, %+v, %v", res, failure, err)
	}
}
