package eventmill

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// Spell implements [contract.Speller]: the members of a ToolResult, with the session.
func (Contract) Spell(session string, res plugin.Result, err error) map[string]any {
	members := map[string]any{
		"ok": err == nil, "error_code": nil, "summary": res.Summary, "result": orNull(res.Data), "session_id": session,
		"message": nil, "details": orNull(res.Details), "output_artifacts": orNull(res.Outputs),
	}
	if res.Message != "" {
		members["message"] = res.Message
	}
	if res.Artifacts == nil {
		members["artifacts"] = []plugin.Artifact{}
	}
	if err != nil {
		e := plugin.AsError(err)
		members["error_code"], members["message"] = Code(err), e.Message
		if len(e.Details) > 0 {
			members["details"] = jsontext.Value(e.Details)
		}
	}
	return members
}

func orNull(raw []byte) jsontext.Value {
	if len(raw) == 0 {
		return jsontext.Value("null")
	}
	return raw
}
