package cursor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

var (
	at   = time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC)
	some = uuid.MustParse("0196a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b")
)

func TestAPositionIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	p := cursor.Position{At: at, ID: some}
	got, err := cursor.ParsePosition(p.String())
	if err != nil || *got != p {
		t.Errorf("%v became %v: %v", p, got, err)
	}
}

func TestCursorsOfEarlierReleasesStayValid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"MjAyNjA1MDQwMzAyMDEuMTIzNDU2Nzg5MDE5NmExYjItYzNkNC03ZTVmLThhNmItN2M4ZDllMGYxYTJi": at,
		"AAZQ9SeOfoABlqGyw9R-X4prfI2eDxor":                                                 at.Truncate(time.Microsecond),
	} {
		got, err := cursor.ParsePosition(text)
		if err != nil || !got.At.Equal(want) || got.ID != some {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestForeignCursorsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "AAAA", "ü", cursor.Position{}.String() + "A"} {
		if _, err := cursor.Parse(&text, cursor.ParsePosition); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("cursor %q: %v", text, err)
		}
	}
	refund := id.Refund(some).Public()
	if got, err := cursor.Parse(&refund, id.ParseRefund); err != nil || got != id.Refund(some) {
		t.Errorf("%s: %v, %v", refund, got, err)
	}
	if _, err := cursor.Parse(&refund, id.ParseHeld); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("the id of another kind: %v", err)
	}
	if got, err := cursor.Parse(nil, cursor.ParsePosition); got != nil || err != nil {
		t.Errorf("no cursor: %v, %v", got, err)
	}
}

func TestPositionsAreOrderedByTimeThenID(t *testing.T) {
	t.Parallel()
	list := []cursor.Position{{At: at, ID: some}, {At: at}, {At: at.Add(-1), ID: some}}
	slices.SortFunc(list, cursor.Position.Compare)
	if list[0].At.Equal(at) || list[1].ID != uuid.Nil {
		t.Errorf("%v", list)
	}
}
