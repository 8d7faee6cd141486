package mortise

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// isVersion1 reports whether a first line opens a conversation of version 1.
func isVersion1(line []byte) bool {
	if !bytes.Contains(line, []byte(`"handshake"`)) {
		return false
	}
	var hello protocol.Handshake
	return json.Unmarshal(line, &hello) == nil && hello.Type == protocol.TypeHandshake
}

// serveOnce answers one call of version 1.
func (s *server) serveOnce(line []byte) error {
	s.once = true
	var hello protocol.Handshake
	if err := json.Unmarshal(line, &hello); err != nil {
		return err
	}
	version := protocol.RuntimeVersion
	if hello.ProtocolVersion == protocol.Version1 {
		version = protocol.Version1
	}
	if err := s.say(protocol.HandshakeReply{Type: protocol.TypeHandshake, Manifest: protocol.V1Manifest{
		PluginID: s.plugin.name, PluginVersion: s.plugin.version, ProtocolVersion: version,
		ExposedTools: s.plugin.order, Capabilities: []string{},
	}}); err != nil {
		return err
	}
	line, err := s.lines.ReadLine()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	var request protocol.Request
	if err := json.Unmarshal(line, &request); err != nil {
		return err
	}
	return s.say(s.respond(&request))
}

func (s *server) respond(request *protocol.Request) protocol.Response {
	r := protocol.Response{Type: protocol.TypeResponse, RequestID: request.RequestID, Status: "error"}
	op := s.plugin.operations[request.ToolName]
	if op == nil {
		r.Error = &protocol.V1Error{Code: "not_found", Message: "no such tool: " + request.ToolName}
		return r
	}
	data, err := job{method: protocol.MethodExecute, call: &Call{server: s, Operation: request.ToolName}, op: op, input: request.Input}.data()
	if n := int64(len(data)); err == nil && n > protocol.MaxFrame1-maxAround1 {
		err = tooLong(n, protocol.MaxFrame1-maxAround1)
	}
	if err != nil {
		e := wire(err)
		r.Error = &protocol.V1Error{Code: e.Data.PluginCode, Message: e.Message}
		if r.Error.Code == "" {
			r.Error.Code = e.Data.Code
		}
		return r
	}
	r.Status, r.Output, r.Metadata = "ok", data, jsontext.Value("{}")
	return r
}

// data does the job and returns the data of its answer alone.
func (j job) data() (data []byte, err error) {
	defer j.caught(&err)
	out, err := j.output()
	if err != nil {
		return nil, err
	}
	if full, ok := out.(answerer); ok {
		out = full.answer().Data
	}
	return marshal(out)
}

// maxAround1 is room for what stands around the output in a line of version 1.
const maxAround1 = 1 << 10

func (s *server) say(message any) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = s.out.Write(append(raw, '\n'))
	return err
}
