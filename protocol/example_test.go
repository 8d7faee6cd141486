package protocol_test

import (
	"fmt"

	"github.com/mortise-dev/mortise/protocol"
)

// A frame is one line: a request, a notification or an answer.
func ExampleParseFrame() {
	f, err := protocol.ParseFrame([]byte(`{"jsonrpc":"2.0","id":7,"method":"describe","params":{}}`))
	fmt.Println(f.Method, string(f.ID), err)
	_, err = protocol.ParseFrame([]byte(`{"jsonrpc":"2.0","id":7,"id":8}`))
	fmt.Println(err != nil)
	// Output:
	// describe 7 <nil>
	// true
}

// Frames are written into one buffer, without an allocation for each.
func ExampleAppendNotification() {
	line := protocol.AppendNotification(nil, "$/cancel", []byte(`{"call":"c1"}`))
	f, err := protocol.ParseFrame(line)
	fmt.Println(f.Method, string(f.Params), err)
	// Output: $/cancel {"call":"c1"} <nil>
}

// An answer bears the id of its request.
func ExampleAppendResult() {
	line := protocol.AppendResult(nil, []byte("7"), []byte(`{"ok":true}`))
	f, err := protocol.ParseFrame(line)
	fmt.Println(string(f.ID), string(f.Result), err)
	// Output: 7 {"ok":true} <nil>
}
