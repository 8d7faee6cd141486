package protocol_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/protocol"
)

func TestWhatHooksSayIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape, result   string
		allow           bool
		reason, payload string
	}{
		{protocol.ShapeListener, `null`, true, "", ""},
		{protocol.ShapeListener, `{}`, true, "", ""},
		{protocol.ShapeListener, `{"allow":null,"payload":null,"later":[]}`, true, "", ""},
		{protocol.ShapeTransform, `null`, true, "", ""},
		{protocol.ShapeTransform, `{}`, true, "", ""},
		{protocol.ShapeTransform, `{"payload":null,"allow":false,"reason":1}`, true, "", ""},
		{protocol.ShapeTransform, `{"payload" : {"n":9007199254740993}}`, true, "", `{"n":9007199254740993}`},
		{protocol.ShapeVeto, `{"allow":true}`, true, "", ""},
		{protocol.ShapeVeto, `{"allow":true,"reason":null,"payload":{}}`, true, "", `{}`},
		{protocol.ShapeVeto, `{"reason":"no","allow":false}`, false, "no", ""},
		{protocol.ShapeVeto, `{"allow":false,"reason":"` + strings.Repeat("é", 4096) + `"}`, false, strings.Repeat("é", 2048), ""},
	} {
		h, err := protocol.ParseHooked(c.shape, []byte(c.result))
		if err != nil || h.Allow != c.allow || h.Reason != c.reason || string(h.Payload) != c.payload {
			t.Errorf("%s %.60s: %+v, %v", c.shape, c.result, h, err)
		}
	}
	for shape, all := range map[string][]string{
		protocol.ShapeListener:  {`1`, `[]`, `"ok"`, `false`, `{"payload":{}}`, `{"allow":true}`, `{"later":1,"payload":1}`},
		protocol.ShapeTransform: {`1`, `[]`, `{"payload":[]}`, `{"payload":"{}"}`},
		protocol.ShapeVeto:      {`null`, `true`, `{}`, `{"allow":null}`, `{"allow":1}`, `{"Allow":true}`, `{"allow":true,"reason":1}`, `{"allow":true,"payload":1}`},
	} {
		for _, bad := range all {
			if h, err := protocol.ParseHooked(shape, []byte(bad)); err == nil {
				t.Errorf("%s %s: %+v", shape, bad, h)
			}
		}
	}
}
