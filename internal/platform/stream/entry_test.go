package stream

import (
	"bytes"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// valuesOf returns the values of an entry as a reader receives them.
func valuesOf(fields []any) map[string]any {
	values := map[string]any{}
	for i := 0; i+1 < len(fields); i += 2 {
		values[fields[i].(string)] = string(bytesOf(fields[i+1]))
	}
	return values
}

func TestEntryIsReadByWatermillsOwnUnmarshaller(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		msg := NewMessage(rapid.StringMatching(`[a-z0-9-]{1,36}`).Draw(t, "id"), rapid.SliceOf(rapid.Byte()).Draw(t, "payload"))
		for key, value := range rapid.MapOf(rapid.StringMatching(`[a-z]{1,8}`), rapid.String()).Draw(t, "metadata") {
			msg.Metadata.Set(key, value)
		}
		fields, err := Entry(msg)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := marshaller.Unmarshal(valuesOf(fields))
		if err != nil {
			t.Fatal(err)
		}
		if !theirs.Equals(msg) {
			t.Fatalf("watermill read %+v", theirs)
		}
		ours := decode(redis.XMessage{ID: "1700000000000-3", Values: valuesOf(fields)})
		if reason, bad := Malformed(ours); bad {
			t.Fatalf("malformed: %s", reason)
		}
		if ours.UUID != msg.UUID || !bytes.Equal(ours.Payload, msg.Payload) {
			t.Fatalf("we read %+v", ours)
		}
	})
}

func TestFieldsBehindTheMessageBecomeMetadata(t *testing.T) {
	t.Parallel()
	msg := decode(redis.XMessage{ID: "1700000000123-4", Values: valuesOf(entryOf(t, 7))})
	want := message.Metadata{"epoch": "3", "at": "1700000000000", metaEntry: "1700000000123-4"}
	if diff := cmp.Diff(want, msg.Metadata); diff != "" {
		t.Error(diff)
	}
	if Attempt(msg) != 1 || Deliveries(msg) != 1 || EntryID(msg) != "1700000000123-4" {
		t.Errorf("attempt %d, delivery %d of %s", Attempt(msg), Deliveries(msg), EntryID(msg))
	}
}

func TestWhatTheSubscriberAddsStaysInside(t *testing.T) {
	t.Parallel()
	msg := decode(redis.XMessage{ID: "1-1", Values: valuesOf(entryOf(t, 7))})
	fields, err := Entry(msg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := marshaller.Unmarshal(valuesOf(fields))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(message.Metadata{"epoch": "3", "at": "1700000000000"}, again.Metadata); diff != "" {
		t.Error(diff)
	}
	forged := decode(redis.XMessage{ID: "1-1", Values: valuesOf(append(entryOf(t, 7), metaMalformed, "x", metaDeliveries, "99"))})
	if _, bad := Malformed(forged); bad || Deliveries(forged) != 1 {
		t.Error("a field of the entry passed for the subscriber's own")
	}
}

func TestEntryRefusesWhatNoReaderAccepts(t *testing.T) {
	t.Parallel()
	for name, msg := range map[string]*Message{
		"no id":             NewMessage("", []byte("{}")),
		"long id":           NewMessage(string(make([]byte, maxIDLength+1)), nil),
		"large payload":     NewMessage("a", make([]byte, MaxPayload+1)),
		"watermill's field": {UUID: "a", Metadata: message.Metadata{FieldID: "b"}},
	} {
		if fields, err := Entry(msg); err == nil {
			t.Errorf("%s: %d fields", name, len(fields))
		}
	}
}

func TestMalformedEntriesAreMarkedWithTheReason(t *testing.T) {
	t.Parallel()
	good := func(more ...any) map[string]any { return valuesOf(append(entryOf(t, 1), more...)) }
	without := func(field string) map[string]any { v := good(); delete(v, field); return v }
	many := good()
	for i := range maxExtra + 1 {
		many[name(i)] = ""
	}
	for want, values := range map[string]map[string]any{
		"no message id":              without(FieldID),
		"no payload":                 without(FieldPayload),
		"message id too long":        good(FieldID, string(make([]byte, maxIDLength+1))),
		"payload too large":          good(FieldPayload, string(make([]byte, MaxPayload+1))),
		"metadata too large":         good(fieldMetadata, string(make([]byte, maxMetadata+1))),
		"metadata cannot be decoded": good(fieldMetadata, "\xdf\xff\xff\xff\xffnot msgpack"),
		"too many fields":            many,
	} {
		msg := decode(redis.XMessage{ID: "5-1", Values: values})
		if reason, bad := Malformed(msg); !bad || reason != want {
			t.Errorf("reason %q, want %q", reason, want)
		}
		if EntryID(msg) != "5-1" {
			t.Errorf("%s: entry %q", want, EntryID(msg))
		}
	}
	// Metadata encoded as nil gives watermill's message a nil map, which cannot be
	// written.
	if msg := decode(redis.XMessage{ID: "5-1", Values: good(fieldMetadata, "\xc0")}); msg.Metadata.Get("epoch") != "3" {
		t.Error("metadata nil")
	}
}

func FuzzDecodeNeverFails(f *testing.F) {
	f.Add(FieldID, "id", fieldMetadata, "\x81\xa1a\xa1b", FieldPayload, "{}")
	f.Add(FieldID, "id", fieldMetadata, "\xc0", FieldPayload, "{}")
	f.Add(FieldID, "id", fieldMetadata, "\xdf\xff\xff\xff\xff", FieldPayload, "")
	f.Add(FieldID, "", "", "", "epoch", "x")
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2, n3, v3 string) {
		msg := decode(redis.XMessage{ID: "5-1", Values: map[string]any{n1: v1, n2: v2, n3: v3}})
		if EntryID(msg) != "5-1" {
			t.Fatal("lost its entry")
		}
		if _, bad := Malformed(msg); !bad && msg.UUID == "" {
			t.Fatal("neither a message nor malformed")
		}
	})
}

// decodeEntry returns a message as the subscriber decodes it.
func decodeEntry(t testing.TB, number int) *Message {
	return decode(redis.XMessage{ID: "5-2", Values: valuesOf(entryOf(t, number))})
}
