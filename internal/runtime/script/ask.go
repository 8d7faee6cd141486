//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"errors"
	"fmt"
	"unsafe"

	"modernc.org/libc"
)

// engineAsk is the one function of the host that code can reach:
// ask(what, text, function).
func engineAsk(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) value {
	m := machineOf(ctx)
	given := [3]value{undefined, undefined, undefined}
	copy(given[:], unsafe.Slice(at[value](argv), argc))
	what := request(int32(given[0].Fu.Fuint641))
	text, err := m.request(given[1])
	if err != nil {
		return m.throw(err.Error())
	}
	answer, err := m.askHost(what, text)
	if err != nil {
		return m.throw(err.Error())
	}
	switch what {
	case askOn:
		m.functions = append(m.functions, m.share(given[2]))
	case askAdd:
		m.tools = append(m.tools, m.share(given[2]))
	}
	return m.newString(answer)
}

// request reads what is asked, within bounds.
func (m *machine) request(v value) (string, error) {
	if m.asks++; m.asks > maxAsks {
		return "", fmt.Errorf("the host answers at most %d requests during one call", maxAsks)
	}
	text, size, ok := m.bounded(v, maxText)
	switch {
	case !ok:
		return "", errors.New("what is asked of the host cannot be made text")
	case size > maxText:
		return "", fmt.Errorf("a request to the host has %d bytes; at most %d are accepted", size, maxText)
	}
	return text, nil
}

// askHost stops the clock of the run while the host answers: it has one of its own.
func (m *machine) askHost(what request, text string) (answer string, err error) {
	if !m.run.pause() {
		return "", errRevoked // and the next step of the engine faults
	}
	defer m.run.resume()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the host could not answer") // and says why in its own log
		}
	}()
	answer, err = m.host.ask(what, text)
	if len(answer) > maxAnswer {
		return "", fmt.Errorf("the host's answer has %d bytes; at most %d are handed on", len(answer), maxAnswer)
	}
	return answer, err
}
