package mortise

import "github.com/go-json-experiment/json/jsontext"

// A Session is what a call works on.
type Session struct {
	ID         string            `json:"session_id"` // empty outside a session
	Pillar     string            `json:"pillar"`     // the field of work, such as network_forensics
	Artifacts  []SessionArtifact `json:"artifacts"`  // the oldest first; outside a session the files handed on with the call
	Config     map[string]any    `json:"config"`
	LLMEnabled bool              `json:"llm_enabled"` // whether a model answers
	Limits     SessionLimits     `json:"limits"`
}

// SessionLimits are what a call of a session may use up.
type SessionLimits struct {
	TimeoutSeconds   float64 `json:"timeout"`
	MaxOutputBytes   int64   `json:"max_output_size"`
	MaxArtifactBytes int64   `json:"max_artifact_size"`
}

// A SessionArtifact is a file that a session keeps. It never changes.
type SessionArtifact struct {
	ID         string         `json:"artifact_id"`
	Type       string         `json:"artifact_type"` // such as pcap
	FilePath   string         `json:"file_path"`     // where the process reads it
	StorageURI string         `json:"storage_uri"`   // empty unless the bytes are in an object store
	SourceTool string         `json:"source_tool"`   // the plugin that made it; empty for a person's file
	Metadata   jsontext.Value `json:"metadata"`
}

// SessionOpen returns what the call works on. The call's answer gets the labels
// of all artifacts in it.
func (c *Call) SessionOpen() (session Session, err error) {
	err = c.Service("session.open", struct{}{}, &session)
	return session, err
}

// ArtifactsList returns the artifacts of the call's session, the oldest first.
func (c *Call) ArtifactsList() ([]SessionArtifact, error) {
	var answer struct {
		Artifacts []SessionArtifact `json:"artifacts"`
	}
	err := c.Service("artifacts.list", struct{}{}, &answer)
	return answer.Artifacts, err
}

// An ArtifactFile is a file to be kept. Only FilePath is needed.
type ArtifactFile struct {
	FilePath   string         `json:"file_path"`               // a regular file in [Call.Scratch], relative to it or absolute
	Type       string         `json:"artifact_type,omitempty"` // found out by the host where it is empty
	SourceTool string         `json:"source_tool,omitempty"`   // the plugin's name where it is empty
	Metadata   map[string]any `json:"metadata,omitempty"`      // at most 64 KiB of JSON
	ID         string         `json:"artifact_id,omitempty"`   // one that the plugin has given out already: art_ and 8 hexadecimal digits
}

// ArtifactsRegister keeps a file as an artifact of the session, and returns it.
// It fails with needs_context outside a session, with invalid_input for what is
// no regular file in the scratch directory, and with limit_exceeded beyond 1,000
// files of a call or the limits of [Session].
func (c *Call) ArtifactsRegister(file ArtifactFile) (kept SessionArtifact, err error) {
	err = c.Service("artifacts.register", file, &kept)
	return kept, err
}
