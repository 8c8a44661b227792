package ratelimit

// history is the attempts of a subject that were allowed, and what Redis has refused. The
// times are Unix microseconds.
type history struct {
	at []int64 // of the newest attempts, oldest first: those that the limit needs, and as many again

	refused policyWindow // Redis has refused attempts under this limit
	until   int64        // up to this time

	unsent int // newest attempts that Redis has to count later
}

// policyWindow is the limit of a policy.
type policyWindow struct {
	most   int
	window int64
}

func (p Policy) limit() policyWindow { return policyWindow{p.Burst, p.window()} }

// wait returns how long an attempt has to wait, 0 = it is allowed. It is what
// lua/window.lua answers for the same history.
func (h *history) wait(p policyWindow, now int64) (wait int64) {
	if h.refused == p && h.until > now && h.until <= now+p.window {
		wait = h.until - now
	}
	if len(h.at) < p.most {
		return wait
	}
	oldest := h.at[len(h.at)-p.most]
	if oldest > now+p.window { // the clock was set back
		h.at = h.at[:0]
		return wait
	}
	return max(wait, min(p.window, oldest+p.window-now))
}

// take records an attempt that is allowed.
func (h *history) take(p policyWindow, now int64) {
	if len(h.at) >= 2*p.most {
		h.at = h.at[:copy(h.at, h.at[len(h.at)-p.most:])]
	}
	h.at = append(h.at, now)
}

// send counts the attempt just taken among the unsent, and returns and clears their number; 0 while
// it is the only one of the window.
func (h *history) send(p policyWindow, now int64) (unsent int) {
	if n := len(h.at); n == 1 || h.at[n-2] <= now-p.window {
		h.unsent = 1
		return 0
	}
	unsent, h.unsent = h.unsent+1, 0
	return unsent
}

// giveBack removes an attempt.
func (h *history) giveBack(at int64) {
	for i := len(h.at) - 1; i >= 0; i-- {
		if h.at[i] == at {
			h.at = append(h.at[:i], h.at[i+1:]...)
			return
		}
	}
}
