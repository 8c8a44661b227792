package ratelimit

import (
	"context"
	"slices"
	"time"

	"seckill/internal/platform/batch"
	"seckill/internal/platform/redisconn"
)

const (
	maxNotes        = 256  // of one pipeline, about 2 ms of Redis
	maxNotesWaiting = 4096 // more are dropped: their attempts count in this process only
	noteTimeout     = 2 * time.Second
)

// note is attempts that a process allowed and Redis does not know.
type note struct {
	policy   Policy
	bucket   bucket
	attempts int
}

func newNotes(send func(context.Context, []note) []batch.Result[int64]) *batch.Batcher[note, int64] {
	return batch.New(batch.Config[note, int64]{
		Process: send, MaxBatch: maxNotes, MaxInFlight: 1, MaxWaiting: maxNotesWaiting, Timeout: noteTimeout,
	})
}

// AllowLater is Allow for what a crowd calls: it never waits for Redis. A process decides by
// its own count, and by what Redis refused before. Redis counts a subject from the second
// attempt of a window in one process, in batches after the answer, and its refusal counts from
// then on. So a client that spreads over n processes has n attempts more, and while a reply is
// awaited the limit in each; buyers who call once cost Redis nothing.
func (l *Limiter) AllowLater(p Policy, subject Subject) Decision {
	if l.cfg.Off || p.unlimited() {
		return decision(0)
	}
	b := bucket{p.Name, subject}
	d, unsent := l.local.takeUnsent(p, b, l.local.now())
	if !d.Allowed {
		l.count(p.Name, RefusedHere)
		return d
	}
	if unsent > 0 {
		go l.sent(note{p, b, unsent})
	}
	l.count(p.Name, Passed)
	return d
}

// sent sends a note in a batch, and refuses what Redis refuses. Without a reply the process
// counts alone.
func (l *Limiter) sent(n note) {
	wait, err := l.notes.Do(context.Background(), n)
	switch {
	case err != nil:
		l.count(n.policy.Name, Faulted)
	case wait > 0:
		l.local.refuse(n.policy, n.bucket, l.local.now()+wait)
	}
}

// sendNotes counts attempts in Redis, and returns the wait of the last one of each note.
func (l *Limiter) sendNotes(ctx context.Context, notes []note) []batch.Result[int64] {
	var runs []redisconn.Run
	for _, n := range notes {
		run := redisconn.Run{Keys: l.keys(n.bucket), Args: []any{n.policy.Burst, n.policy.window()}}
		runs = append(runs, slices.Repeat([]redisconn.Run{run}, n.attempts)...)
	}
	replies := redisconn.RunEach(ctx, l.cfg.Client, allow, runs)
	results := make([]batch.Result[int64], len(notes))
	for i, n := range notes {
		results[i].Value, results[i].Err = replies[n.attempts-1].Int64()
		replies = replies[n.attempts:]
	}
	return results
}
