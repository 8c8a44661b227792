package inbox

import (
	"encoding/json"
	"testing"
	"time"

	"seckill/internal/platform/notifier"
)

func TestAnAlarmAboutAProviderEndsWithItsAnswerOrItsTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	report := func(until time.Time) notifier.Event {
		text, err := json.Marshal(providerReport{Until: until})
		if err != nil {
			t.Fatal(err)
		}
		return notifier.Event{Value: json.RawMessage(text)}
	}
	a := newAlarms()
	expect := func(want int, since time.Time, what string) {
		t.Helper()
		entries := a.entries(now)
		if len(entries) != want || want > 0 && (entries[0].Kind != ProviderAway || entries[0].Subject != "bank" || !entries[0].Since.Equal(since)) {
			t.Errorf("%s: %+v", what, entries)
		}
	}
	first := now
	a.recordReport("bank", report(now.Add(30*time.Second)), now)
	expect(1, first, "it is away")
	now = now.Add(20 * time.Second)
	a.recordReport("bank", report(now.Add(30*time.Second)), now)
	expect(1, first, "it is away since the first report")
	a.recordReport("bank", report(time.Time{}), now)
	expect(0, now, "it answers again")
	a.recordReport("bank", report(now.Add(30*time.Second)), now)
	expect(1, now, "it is away a second time")
	now = now.Add(30 * time.Second)
	expect(0, now, "no process has called it for half a minute")
}
