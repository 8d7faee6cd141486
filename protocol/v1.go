package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// The types of version 1's messages.
const (
	TypeHandshake = "handshake"
	TypeRequest   = "request"
	TypeResponse  = "response"
)

// A Handshake is the host's first line (PluginHandshakeRequest).
type Handshake struct {
	Type            string `json:"type"`
	ProtocolVersion string `json:"protocol_version"`
}

// A HandshakeReply is the plugin's first line (PluginHandshakeResponse).
type HandshakeReply struct {
	Type     string     `json:"type"`
	Manifest V1Manifest `json:"manifest"`
}

// A V1Manifest is what a plugin of version 1 says of itself.
type V1Manifest struct {
	PluginID        string   `json:"plugin_id"`
	PluginVersion   string   `json:"plugin_version"`
	ProtocolVersion string   `json:"protocol_version"`
	ExposedTools    []string `json:"exposed_tools"`
	Capabilities    []string `json:"capabilities"`
}

// A Request is the host's second line (PluginRequest).
type Request struct {
	Type      string            `json:"type"`
	RequestID string            `json:"request_id"`
	ToolName  string            `json:"tool_name"`
	Context   map[string]string `json:"context"`
	Input     jsontext.Value    `json:"input"`
}

// A Response is the plugin's second line (PluginResponse).
type Response struct {
	Type      string         `json:"type"`
	RequestID string         `json:"request_id"`
	Status    string         `json:"status"` // ok or error
	Output    jsontext.Value `json:"output,omitzero"`
	Metadata  jsontext.Value `json:"metadata,omitzero"`
	Error     *V1Error       `json:"error,omitzero"`
}

// A V1Error is why a plugin of version 1 refused (PluginError).
type V1Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A Binding is what the host expects of a plugin of version 1.
type Binding struct {
	PluginID        string
	Version         string // of the plugin; "" where any will do
	ProtocolVersion string
	Tool            string
	Capabilities    []string // the allow-list
}

// AppendHandshake appends the host's first line.
func AppendHandshake(b []byte, version string) []byte {
	b = append(b, `{"type":"handshake","protocol_version":`...)
	b = AppendString(b, version)
	return append(b, "}\n"...)
}

// AppendV1Request appends the host's second line. Context is written with its
// known names in the contract's order, then the others sorted.
func AppendV1Request(b []byte, id, tool string, context map[string]string, input []byte) []byte {
	b = append(b, `{"type":"request","request_id":`...)
	b = AppendString(b, id)
	b = append(b, `,"tool_name":`...)
	b = AppendString(b, tool)
	b = append(b, `,"context":{`...)
	for i, name := range contextNames(context) {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, name)
		b = append(b, ':')
		b = AppendString(b, context[name])
	}
	b = append(b, `},"input":`...)
	if len(input) == 0 {
		b = append(b, "{}"...)
	} else {
		b = append(b, Line(input)...)
	}
	return append(b, "}\n"...)
}

var contextOrder = []string{"workspace_id", "widget_id", "repo_root", "role_id", "mode_id"}

func contextNames(context map[string]string) []string {
	var known, others []string
	for _, name := range contextOrder {
		if _, present := context[name]; present {
			known = append(known, name)
		}
	}
	for name := range context {
		if !slices.Contains(contextOrder, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(known, others...)
}

// CheckHandshake judges a plugin's first line: nil, or an error with the code
// that the runtime protocol gives this failure. The order of the checks is
// type, version, plugin_id, plugin_version, exposed_tools, the id and the version
// against the binding, the tool, capabilities.
func CheckHandshake(line []byte, want Binding) *plugin.Error {
	bad := func(format string, args ...any) *plugin.Error {
		return plugin.Errorf(plugin.CodeHandshakeFailed, "handshake: "+format, args...)
	}
	// Members are read one by one, so that one of a wrong type is blamed by name.
	var reply struct {
		Type     jsontext.Value `json:"type"`
		Manifest jsontext.Value `json:"manifest"`
	}
	if err := decodeObject(line, &reply); err != nil {
		return bad("%w", err)
	}
	if text(reply.Type) != TypeHandshake {
		return bad("type is not %q", TypeHandshake)
	}
	var m struct {
		PluginID        jsontext.Value `json:"plugin_id"`
		PluginVersion   jsontext.Value `json:"plugin_version"`
		ProtocolVersion jsontext.Value `json:"protocol_version"`
		ExposedTools    jsontext.Value `json:"exposed_tools"`
		Capabilities    jsontext.Value `json:"capabilities"`
	}
	if reply.Manifest.Kind() != '{' {
		return bad("manifest is missing")
	}
	if err := json.Unmarshal(reply.Manifest, &m); err != nil {
		return bad("manifest: %w", err)
	}
	if got := text(m.ProtocolVersion); got != want.ProtocolVersion {
		if got == "" {
			return plugin.Errorf(plugin.CodeProtocolVersionMismatch, "handshake: the plugin names no protocol_version; the host speaks %s", want.ProtocolVersion)
		}
		return plugin.Errorf(plugin.CodeProtocolVersionMismatch, "handshake: the plugin speaks %.60s; the host speaks %s", got, want.ProtocolVersion)
	}
	id := text(m.PluginID)
	if strings.TrimSpace(id) == "" {
		return bad("plugin_id is missing")
	}
	if strings.TrimSpace(text(m.PluginVersion)) == "" {
		return bad("plugin_version is missing")
	}
	tools, err := names("exposed_tools", m.ExposedTools)
	if err != nil {
		return bad("%w", err)
	}
	if len(tools) == 0 {
		return bad("exposed_tools is missing or empty")
	}
	if id != want.PluginID {
		return bad("plugin_id is %.120q; %q is bound", id, want.PluginID)
	}
	if got := text(m.PluginVersion); want.Version != "" && got != want.Version {
		return bad("plugin_version is %.60q; %q was registered: register what the command starts now, or bind that version", got, want.Version)
	}
	if !slices.Contains(tools, want.Tool) {
		return plugin.Errorf(plugin.CodeToolNotExposed, "the plugin does not expose %s; it exposes %.200s", want.Tool, strings.Join(tools, ", "))
	}
	capabilities, err := names("capabilities", m.Capabilities)
	if err != nil {
		return bad("%w", err)
	}
	if len(want.Capabilities) > 0 && len(capabilities) == 0 {
		return plugin.Errorf(plugin.CodeCapabilityNotDeclared, "the binding grants %s and the handshake asks for none", strings.Join(want.Capabilities, ", "))
	}
	for _, name := range capabilities {
		if !slices.Contains(want.Capabilities, name) {
			return plugin.Errorf(plugin.CodeCapabilityNotAllowed, "the plugin asks for %.120q, which is not on its allow-list", name)
		}
	}
	return nil
}

// CheckResponse judges a plugin's second line: its output, or an error, which
// is malformed_response or the plugin's own.
func CheckResponse(line []byte, requestID string) (output jsontext.Value, failure *plugin.Error) {
	bad := func(format string, args ...any) *plugin.Error {
		return plugin.Errorf(plugin.CodeMalformedResponse, "response: "+format, args...)
	}
	var r struct {
		Type      jsontext.Value `json:"type"`
		RequestID jsontext.Value `json:"request_id"`
		Status    jsontext.Value `json:"status"`
		Output    jsontext.Value `json:"output"`
		Error     jsontext.Value `json:"error"`
	}
	if err := decodeObject(line, &r); err != nil {
		return nil, bad("%w", err)
	}
	if text(r.Type) != TypeResponse {
		return nil, bad("type is not %q", TypeResponse)
	}
	if got := text(r.RequestID); got != requestID {
		return nil, bad("request_id is %.60q; %q was asked", got, requestID)
	}
	hasError := len(r.Error) > 0 && r.Error.Kind() != 'n'
	switch status := text(r.Status); {
	case status == "ok" && hasError:
		return nil, bad("status is ok and there is an error")
	case status == "ok":
		if len(r.Output) == 0 {
			return jsontext.Value("null"), nil
		}
		return bytes.Clone(r.Output), nil
	case status != "error":
		return nil, bad("status is %.40q; it is ok or error", status)
	case !hasError:
		return nil, bad("status is error and there is no error")
	}
	var e struct {
		Code    jsontext.Value `json:"code"`
		Message jsontext.Value `json:"message"`
	}
	if r.Error.Kind() != '{' {
		return nil, bad("error is not an object")
	}
	if err := json.Unmarshal(r.Error, &e); err != nil {
		return nil, bad("error: %w", err)
	}
	code, message := text(e.Code), text(e.Message)
	if strings.TrimSpace(code) == "" || strings.TrimSpace(message) == "" {
		return nil, bad("an error has a code and a message")
	}
	return nil, &plugin.Error{Code: plugin.CodePluginError, PluginCode: cut(code, 128), Message: cut(message, MaxMessage)}
}

// decodeObject reads one line that must be one strict I-JSON object.
func decodeObject(line []byte, into any) error {
	value := jsontext.Value(line)
	if value.Kind() != '{' {
		if !value.IsValid() {
			return errors.New("not JSON")
		}
		return errors.New("not a JSON object")
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("not one JSON object: %w", err)
	}
	if TooDeep(line) {
		return fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	return nil
}

// text returns the string that a value is, "" for anything else.
func text(value jsontext.Value) string {
	if value.Kind() != '"' {
		return ""
	}
	b, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(b)
}

// names reads a list of names and refuses empty, padded and duplicate ones.
func names(member string, value jsontext.Value) ([]string, error) {
	if len(value) == 0 || value.Kind() == 'n' {
		return nil, nil
	}
	var list []string
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("%s is not a list of names", member)
	}
	if err := checkNames(list); err != nil {
		return nil, fmt.Errorf("%s %w", member, err)
	}
	return list, nil
}

// checkNames refuses a list with an empty, padded or duplicate name.
func checkNames(list []string) error {
	seen := make(map[string]bool, len(list))
	for _, name := range list {
		switch {
		case strings.TrimSpace(name) == "":
			return errors.New("holds an empty name")
		case strings.TrimSpace(name) != name:
			return fmt.Errorf("holds the padded name %.120q", name)
		case seen[name]:
			return fmt.Errorf("holds %.120q twice", name)
		}
		seen[name] = true
	}
	return nil
}
