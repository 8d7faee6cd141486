package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A journal carries what one plugin logs, a bounded number of lines in a time.
// It is safe for concurrent use.
type journal struct {
	to func(level, message string, fields json.RawMessage) // nil drops

	mu      sync.Mutex
	tokens  int
	filled  time.Time
	dropped int
}

func newJournal(to func(level, message string, fields json.RawMessage)) *journal {
	return &journal{to: to, tokens: logBurst, filled: time.Now()}
}

// line takes a line as prelude.js writes it.
func (j *journal) line(text string) error {
	var line struct {
		Level, Message string
		Fields         *string
	}
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		return errors.New("a line of the log is a level and a message")
	}
	var fields json.RawMessage
	if line.Fields != nil {
		fields = json.RawMessage(cut(*line.Fields, maxMessage))
		var object map[string]json.RawMessage
		if json.Unmarshal(fields, &object) != nil {
			fields, _ = json.Marshal(map[string]string{"value": string(fields)}) // two strings always can be
		}
	}
	switch line.Level {
	case "debug", "info", "warn", "error":
		j.write(line.Level, cut(line.Message, maxMessage), fields)
		return nil
	}
	return errors.New("the levels of the log are debug, info, warn and error")
}

// write hands a line on, or counts it if there were too many.
func (j *journal) write(level, message string, fields json.RawMessage) {
	if j.to == nil {
		return
	}
	dropped, may := j.take()
	if !may {
		return
	}
	if dropped > 0 {
		j.to("warn", fmt.Sprintf("%d lines were dropped: the plugin logs too much", dropped), nil)
	}
	j.to(level, message, fields)
}

// take reports whether one more line may be written, and how many were not.
func (j *journal) take() (dropped int, may bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := int(time.Since(j.filled) / logEvery); n > 0 {
		j.tokens, j.filled = min(logBurst, j.tokens+n), j.filled.Add(time.Duration(n)*logEvery)
	}
	if j.tokens == 0 {
		j.dropped++
		return 0, false
	}
	j.tokens--
	dropped, j.dropped = j.dropped, 0
	return dropped, true
}
