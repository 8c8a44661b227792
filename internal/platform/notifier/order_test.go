package notifier

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Events are lost, duplicated, delayed and reordered; the receiver is slow at times.
func TestAFollowerNeverGoesBackAndAlwaysSeesTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		changes := rapid.IntRange(0, 30).Draw(rt, "changes")
		fates := rapid.SliceOfN(rapid.SampledFrom([]string{"lost", "sent", "twice", "empty", "late"}), changes+2, changes+2).Draw(rt, "fates")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 3000), changes+2, changes+2).Draw(rt, "pauses")
		lag := rapid.IntRange(0, 4000).Draw(rt, "lag")
		joins := rapid.IntRange(0, changes).Draw(rt, "joins")
		synctest.Test(t, func(t *testing.T) {
			h, s := NewHub(Options{}), &store{}
			s.set(1, "", false)
			results := make(chan []State[record], 1)
			for i := range changes + 1 {
				if i == joins {
					states := follow(t, t.Context(), h, s)
					go func() {
						var seen []State[record]
						for state := range states {
							seen = append(seen, state)
							<-time.After(time.Duration(lag) * time.Millisecond)
						}
						results <- seen
					}()
				}
				revision, terminal := int64(i+2), i == changes
				s.set(revision, "", terminal)
				e := Event{Key: "k", Revision: revision, Terminal: terminal, Value: record{}}
				switch fates[i] {
				case "sent":
					h.Publish(e)
				case "twice":
					h.Publish(e)
					h.Publish(e)
				case "empty":
					e.Value = nil
					h.Publish(e)
				case "late":
					time.AfterFunc(time.Duration(pauses[i+1])*time.Millisecond, func() { h.Publish(e) })
				}
				<-time.After(time.Duration(pauses[i]) * time.Millisecond)
			}
			seen := <-results
			for i, state := range seen {
				if state.Snapshot != (i == 0) || (i > 0 && state.Revision <= seen[i-1].Revision) {
					t.Fatalf("%d: %+v", i, seen)
				}
			}
			if last := seen[len(seen)-1]; !last.Terminal || last.Revision != int64(changes+2) {
				t.Fatalf("ends with %+v", last)
			}
		})
	})
}
