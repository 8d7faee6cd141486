package process

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// serve answers a request of the plugin, beside whatever else goes on.
func (s *session) serve(f *protocol.Frame) {
	reply := func(value jsontext.Value, err error) (size int) {
		b, full := s.out.begin()
		if full != nil {
			return 0
		}
		before := len(b)
		if err != nil {
			b = protocol.AppendError(b, f.ID, protocol.FromPlugin(err))
		} else {
			b = protocol.AppendResult(b, f.ID, protocol.Line(value))
		}
		size = len(b) - before
		s.out.answers += size
		s.out.commit(b, false)
		return size
	}
	if !strings.Contains(f.Method, ".") {
		if b, full := s.out.begin(); full == nil {
			s.out.commit(protocol.AppendError(b, f.ID, &protocol.Error{Number: protocol.RPCMethodNotFound, Message: "no such method: " + cut(f.Method, 120)}), false)
		}
		return
	}
	var params protocol.ServiceCall
	if err := json.Unmarshal(f.Params, &params); err != nil {
		reply(nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", cut(f.Method, 120), err))
		return
	}
	x := s.byToken(params.Call)
	if x == nil || x.services == nil {
		reply(nil, plugin.Errorf(plugin.CodeServiceDenied, "%s: no such call is running", cut(f.Method, 120)))
		return
	}
	select {
	case s.serving <- struct{}{}:
	default:
		reply(nil, plugin.Errorf(plugin.CodeOverloaded, "more than %d requests of this plugin are being answered", maxServing))
		return
	}
	args := params.Args
	if len(args) == 0 {
		args = f.Params // operations.call has its members beside the token
	}
	s.answering.Go(func() {
		defer func() { <-s.serving }()
		if err := s.out.room(x.ctx); err != nil { // it asks for more than it reads
			reply(nil, err)
			return
		}
		s.out.answered(reply(rawOf(x.services.Serve(x.ctx, f.Method, []byte(args)))))
	})
}

func rawOf(value []byte, err error) (jsontext.Value, error) {
	if err == nil && len(value) == 0 {
		value = []byte("{}")
	}
	return jsontext.Value(value), err
}
