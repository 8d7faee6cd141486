package agent

import (
	"time"
)

// TurnOperation runs one turn of an agent: a schedule of an agent runs it, and any
// caller may call it for a single answer.
const TurnOperation = "agent.chat/turn"

// A Remembered is something that an agent remembers, as it is shown.
type Remembered struct {
	Key       string    `json:"key"`
	Content   string    `json:"content"`
	UpdatedAt time.Time `json:"updated_at"`
}

// RememberedOf returns memories as they are shown.
func RememberedOf(rows []MemoryRow) []Remembered {
	all := make([]Remembered, len(rows))
	for i, r := range rows {
		all[i] = Remembered{r.Key, r.Content, r.UpdatedAt}
	}
	return all
}
