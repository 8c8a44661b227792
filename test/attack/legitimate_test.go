//go:build attack

package attack_test

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// During a flood, the latency of a legitimate buyer may be at most 5 times that of a quiet
// server. Latencies below floor always pass: users do not notice them, and one scheduling
// pause takes as long.
const (
	slowest = 5
	floor   = 100 * time.Millisecond
)

// pace compares a percentile with that of the quiet server. A slow result does not fail the
// test, because the attackers share the machine with the server.
func pace(p99, quiet time.Duration) string {
	if p99 > max(slowest*quiet, floor) {
		return "SLOW"
	}
	return "in time"
}

// measureLegitimate measures a legitimate buyer until stop, which returns the 99th percentile.
func (s *target) measureLegitimate() (stop func() time.Duration) {
	done := make(chan struct{})
	var p99 time.Duration
	var running sync.WaitGroup
	running.Go(func() { p99 = s.follow(done, 0) })
	return func() time.Duration {
		close(done)
		running.Wait()
		return p99
	}
}

// requests returns the 99th percentile of n requests of a legitimate buyer.
func (s *target) requests(n int) time.Duration { return s.follow(nil, n) }

// follow sends requests from an address of its own until done, or n of them.
func (s *target) follow(done <-chan struct{}, n int) time.Duration {
	transport := &http.Transport{} // a browser has a connection of its own
	defer transport.CloseIdleConnections()
	own := &target{t: s.t, url: s.url, client: &http.Client{Transport: transport, Timeout: time.Minute}}
	const body = `{"query":"{ sales(first: 3) { edges { node { id phase } } } }"}`
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var times []time.Duration
	for ended := false; !ended; {
		began := time.Now()
		own.send("93.199.1.1", body, nil)
		times = append(times, time.Since(began))
		ended = len(times) == n
		select {
		case <-done:
			ended = true
		case <-tick.C:
		}
	}
	slices.Sort(times)
	return times[len(times)*99/100]
}
