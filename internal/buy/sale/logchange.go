package sale

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ValueKind is the kind of a value in a log.
type ValueKind string

// Kinds of values.
const (
	ValueBoolean ValueKind = "BOOLEAN"
	ValueInstant ValueKind = "INSTANT" // RFC 3339
	ValueJSON    ValueKind = "JSON"    // a list or an object
	ValueNumber  ValueKind = "NUMBER"
	ValueText    ValueKind = "TEXT"
)

// LogChange is a field that an act changed.
type LogChange struct {
	Name      string
	Kind      ValueKind
	From      *string // the former value; nil = there was none, or it was not recorded
	FromKnown bool    // the former value was recorded
	To        string  // text as it is, everything else as JSON; "null" = there is none now
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
	renamed(now)
	renamed(before)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, changed := before[name]; len(before) > 0 && !changed && slices.Contains(loggedWhole, name) {
			continue
		}
		change := LogChange{Name: name, Kind: kindOf(name, now[name]), To: plain(now[name])}
		former, known := before[name]
		change.FromKnown = known
		if known && !none(former) {
			text := plain(former)
			change.From = &text
		}
		if none(now[name]) && change.From != nil {
			change.Kind = kindOf(name, former)
		}
		changes = append(changes, change)
	}
	return changes
}

// loggedWhole are the fields that entries of former releases have also where they did not
// change, together with those that did.
var loggedWhole = []string{
	"captchaRequired", "captchaKinds", "proofOfWorkMax", "permitRatio", "inflowPerSecond", "limitBurst", "limitPerSecond",
	"startsAt", "endsAt", "preheatAt",
}

// renamed gives the fields of former releases the names of the inputs.
func renamed(fields map[string]json.RawMessage) {
	var perMille float64
	if value, ok := fields["permitPerMille"]; ok && json.Unmarshal(value, &perMille) == nil {
		delete(fields, "permitPerMille")
		fields["permitRatio"] = json.RawMessage(strconv.FormatFloat(perMille/1000, 'g', -1, 64))
	}
}

func none(value json.RawMessage) bool { return string(value) == "null" }

// kindOf returns the kind of a value. Instants are the texts of fields that are named for it.
func kindOf(name string, value json.RawMessage) ValueKind {
	switch value[0] {
	case '"', 'n':
		if strings.HasSuffix(name, "At") {
			return ValueInstant
		}
		return ValueText
	case 't', 'f':
		return ValueBoolean
	case '{', '[':
		return ValueJSON
	}
	return ValueNumber
}

// plain returns the text of a JSON string, and the JSON of every other value.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && !none(value) {
		return text
	}
	return string(value)
}
