package sale

import (
	"encoding/json"
	"maps"
	"slices"
)

// LogChange is a field that an act changed.
type LogChange struct {
	Name string
	From *string // the former value; nil = there was none, or it was not recorded
	To   string  // text as it is, everything else as JSON
}

// FormerValues is the field of an act's details with the former values of the other fields.
const FormerValues = "before"

// Changes returns what an act changed, by name.
func (l LogLine) Changes() []LogChange { return changesOf(l.Details) }

// Changes returns what an act changed, by name.
func (l GoodsLine) Changes() []LogChange { return changesOf(l.Details) }

func changesOf(details string) []LogChange {
	changes := []LogChange{}
	var now, before map[string]json.RawMessage
	if json.Unmarshal([]byte(details), &now) != nil {
		return changes // of an act that changed nothing
	}
	if json.Unmarshal(now[FormerValues], &before) == nil {
		delete(now, FormerValues)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		change := LogChange{Name: name, To: plain(now[name])}
		if former, known := before[name]; known && string(former) != "null" {
			text := plain(former)
			change.From = &text
		}
		changes = append(changes, change)
	}
	return changes
}

// plain returns the text of a JSON string, and the JSON of every other value.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && string(value) != "null" {
		return text
	}
	return string(value)
}
