package inbox

import (
	"encoding/json"
	"sync"
	"time"

	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
)

// lostAfter is how long a gate is missing before a person has to look: schedulers rebuild
// it within seconds.
const lostAfter = 5 * time.Second

// providerKey is the status bus key of reports about a payment provider.
func providerKey(name string) string { return "provider:" + name }

// providerReport is what a process that called a provider reports to the others. The revision of
// its event is the time of the report in nanoseconds.
type providerReport struct {
	Until time.Time `json:"until"` // until when it counts as away; zero = it answers
}

// alarms is what this process knows of failures that are in no table.
type alarms struct {
	mu    sync.Mutex
	gates map[id.Sale]time.Time // by sale, since when its gate is lost; guarded by mu
	away  map[string]absence    // by provider; guarded by mu
}

type absence struct{ since, until time.Time }

func newAlarms() alarms {
	return alarms{gates: map[id.Sale]time.Time{}, away: map[string]absence{}}
}

// lost records the sales that have lost a gate.
func (a *alarms) lost(sales []id.Sale, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.gates
	a.gates = make(map[id.Sale]time.Time, len(sales))
	for _, v := range sales {
		since, known := before[v]
		if !known {
			since = now
		}
		a.gates[v] = since
	}
}

// recordReport records a report about a provider.
func (a *alarms) recordReport(provider string, e notifier.Event, now time.Time) {
	report, ok := e.Value.(providerReport)
	if text, raw := e.Value.(json.RawMessage); raw {
		ok = json.Unmarshal(text, &report) == nil
	}
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if report.Until.IsZero() {
		delete(a.away, provider)
		return
	}
	since := now
	if before, known := a.away[provider]; known {
		since = before.since
	}
	a.away[provider] = absence{since, report.Until}
}

// entries returns the alarms at now.
func (a *alarms) entries(now time.Time) (entries []Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for v, since := range a.gates {
		if now.Sub(since) >= lostAfter {
			entries = append(entries, Entry{Kind: GateLost, Subject: v.Public(), Since: since, Sale: v})
		}
	}
	for provider, is := range a.away {
		if now.Before(is.until) {
			entries = append(entries, Entry{Kind: ProviderAway, Subject: provider, Since: is.since})
		}
	}
	return entries
}
