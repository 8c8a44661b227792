package salestats

import (
	"sort"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/telemetry"
)

// Stage is a call of a buyer at the gate.
type Stage string

// The stages, in the order in which a buyer reaches them.
const (
	StageCaptcha Stage = "CAPTCHA" // createCaptcha for a sale
	StagePath    Stage = "PATH"    // issueSeckillPath
	StageQueue   Stage = "QUEUE"   // enterQueue
	StageOrder   Stage = "ORDER"   // placeOrder
)

// stages lists every stage.
func stages() []Stage { return []Stage{StageCaptcha, StagePath, StageQueue, StageOrder} }

// Outcomes of a call beside the reasons of refusals, which are upper case.
const (
	callPassed  = "passed"
	callQueued  = "queued"
	callFaulted = "faulted"
)

// Call is one call of a stage other than StageOrder, for which see Placement.
type Call struct {
	Sale   id.Sale
	User   id.User
	Item   id.Item // zero = the call named none
	Stage  Stage
	Queued bool  // answered with a place in the waiting room instead of a path token
	Err    error // a refusal or a fault; nil = passed or queued
}

func (c Call) outcome() string {
	switch why := fault.ReasonOf(c.Err); {
	case why != "":
		return string(why)
	case c.Err != nil:
		return callFaulted
	case c.Queued:
		return callQueued
	}
	return callPassed
}

// calls is a stage and an outcome.
type calls struct {
	stage   Stage
	outcome string
}

// callPrefix begins the counter fields of calls: "s:PATH:SOLD_OUT".
const callPrefix = "s:"

func (c calls) field() string { return callPrefix + string(c.stage) + ":" + c.outcome }

// Gate is the count of the calls of one stage: Calls = Passed + Queued + Faulted + those
// of Refused.
type Gate struct {
	Stage   Stage       `json:"stage"`
	Calls   int64       `json:"calls"`
	Passed  int64       `json:"passed"`  // of ORDER: accepted and replayed
	Queued  int64       `json:"queued"`  // of PATH: got a place in the waiting room
	Faulted int64       `json:"faulted"` // failed through no fault of the buyer
	Refused []Rejection `json:"refused"` // most frequent first
}

// gates returns the counts of every stage; s holds those of placeOrder.
func (c counters) gates(s *Stats) []Gate {
	out := make([]Gate, 0, len(stages()))
	for _, stage := range stages() {
		g := Gate{Stage: stage, Refused: []Rejection{}}
		if stage == StageOrder {
			g.Passed, g.Faulted, g.Refused = s.Accepted+s.Replayed, s.Faulted, append(g.Refused, s.Refused...)
		}
		for field, n := range c {
			outcome, ok := strings.CutPrefix(field, calls{stage: stage}.field())
			switch {
			case !ok:
			case outcome == callPassed:
				g.Passed = n
			case outcome == callQueued:
				g.Queued = n
			case outcome == callFaulted:
				g.Faulted = n
			default:
				g.Refused = append(g.Refused, Rejection{Reason: fault.Reason(outcome), Count: n})
			}
		}
		g.Calls = g.Passed + g.Queued + g.Faulted
		for _, r := range g.Refused {
			g.Calls += r.Count
		}
		sortRejections(g.Refused)
		out = append(out, g)
	}
	return out
}

// sortRejections sorts by frequency, then by reason.
func sortRejections(list []Rejection) {
	sort.Slice(list, func(i, j int) bool {
		return list[i].Count > list[j].Count || (list[i].Count == list[j].Count && list[i].Reason < list[j].Reason)
	})
}

// newCallMetric registers the counts of this process with reg; nil = they are not exported.
func newCallMetric(reg prometheus.Registerer) *prometheus.CounterVec {
	return telemetry.For(reg, "salestats").Counters("calls_total",
		"Calls of buyers at the gate, those included that no service was asked for. Label stage: CAPTCHA, PATH, QUEUE, ORDER. "+
			"Label outcome: passed, queued, faulted, or the reason of a refusal.", "stage", "outcome")
}

// export adds a batch to the metric: once per flush, so that placeOrder does not pay for it.
func (b *batch) export(metric *prometheus.CounterVec) {
	add := func(stage Stage, outcome string, n int64) {
		if n > 0 {
			metric.WithLabelValues(string(stage), outcome).Add(float64(n))
		}
	}
	add(StageOrder, callPassed, b.accepted+b.replayed)
	add(StageOrder, callFaulted, b.faulted)
	for reason, n := range b.refused {
		add(StageOrder, string(reason), n)
	}
	for c, n := range b.calls {
		add(c.stage, c.outcome, n)
	}
}
