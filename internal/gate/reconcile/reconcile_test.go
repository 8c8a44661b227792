package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/buy/sale"
	"seckill/internal/gate/audit"
	"seckill/internal/gate/reconcile"
	"seckill/internal/platform/id"
)

// figures are the counts since the last read: "drift", repairs by kind, and "unfinished
// " by kind.
type figures map[string]int

// metricsOf returns the metrics of a registry.
func metricsOf(t *testing.T, shown *prometheus.Registry) figures {
	t.Helper()
	families, err := shown.Gather()
	if err != nil {
		t.Fatal(err)
	}
	f := figures{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			switch family.GetName() {
			case "seckill_reconcile_findings_total":
				f["drift"] = int(series.GetCounter().GetValue())
			case "seckill_reconcile_repairs_total":
				f[series.GetLabel()[0].GetValue()] = int(series.GetCounter().GetValue())
			case "seckill_reconcile_unfinished":
				f["unfinished "+series.GetLabel()[0].GetValue()] = int(series.GetGauge().GetValue())
			}
		}
	}
	return f
}

// rig is a reconciler over one sale with a state set by the test.
type rig struct {
	differs    bool
	report     audit.Report
	epoch      int64 // of the gates
	unfinished map[string]int
	uncounted  error // of Unfinished
	shown      *prometheus.Registry
	before     figures // the counters after the previous rounds
	sale       id.Sale
	log        bytes.Buffer
	*reconcile.Reconciler
}

// state is the Source with the state of the rig.
type state struct {
	*rig
	v *sale.Sale
}

func (s state) Loaded(context.Context) ([]*sale.Sale, error)            { return []*sale.Sale{s.v}, nil }
func (s state) Differs(context.Context, id.Sale, id.Item) (bool, error) { return s.differs, nil }
func (s state) Audit(context.Context, id.Sale) (*audit.Report, error)   { return &s.report, nil }
func (state) Resend(context.Context, *sale.Sale, audit.Lost) error      { return nil }
func (s state) Unfinished(context.Context) (map[string]int, error)      { return s.unfinished, s.uncounted }

func (s state) Rebuild(_ context.Context, _ id.Sale, epoch int64) (bool, error) {
	if epoch != s.epoch {
		return false, nil
	}
	s.epoch++
	return true, nil
}

func setup() *rig {
	r := &rig{shown: prometheus.NewRegistry(), before: figures{}}
	r.sale = id.Sale(uuid.New())
	v := &sale.Sale{ID: r.sale, Items: []*sale.Item{{ID: id.Item(uuid.New())}}}
	r.Reconciler = reconcile.NewOf(state{rig: r, v: v}, r.shown, slog.New(slog.NewTextHandler(&r.log, nil)))
	return r
}

func (r *rig) rounds(t *testing.T, n int, want figures) {
	t.Helper()
	for range n {
		if _, err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	after := metricsOf(t, r.shown)
	got := figures{}
	for name, n := range after {
		if unfinished := strings.HasPrefix(name, "unfinished "); unfinished || n != r.before[name] {
			got[name] = n
			if !unfinished {
				got[name] -= r.before[name]
			}
		}
	}
	r.before = after
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDriftThatStaysIsRepairedCountedAndLogged(t *testing.T) {
	t.Parallel()
	r := setup()
	r.rounds(t, 3, figures{})
	r.differs = true
	r.rounds(t, 1, figures{}) // it may be in transit
	r.rounds(t, 1, figures{}) // the audit finds nothing
	r.report = audit.Report{Drift: 2, Findings: []string{"a", "b"}}
	r.rounds(t, 1, figures{"drift": 2, "rebuilt": 1})
	if !strings.Contains(r.log.String(), "sale="+r.sale.Public()) {
		t.Errorf("the log does not name the sale as `seckill audit` takes it:\n%s", r.log.String())
	}
	r.report.Lost = []audit.Lost{{Task: id.Task(uuid.New())}, {Task: id.Task(uuid.New())}}
	r.rounds(t, 1, figures{"drift": 2, "resent": 2})
	r.differs = false
	r.rounds(t, 2, figures{})
}

func TestGatesThatAnotherProcessRebuiltAreNotRebuiltAgain(t *testing.T) {
	t.Parallel()
	r := setup()
	r.differs, r.epoch = true, 3
	r.report = audit.Report{Epoch: 2, Drift: 1, Findings: []string{"a"}}
	r.rounds(t, 2, figures{"drift": 1})
	if r.epoch != 3 {
		t.Errorf("epoch %d", r.epoch)
	}
	r.report.Epoch = 3
	r.rounds(t, 1, figures{"drift": 1, "rebuilt": 1})
}

func TestWhatOthersLeaveUndoneIsCountedInEachRound(t *testing.T) {
	t.Parallel()
	r := setup()
	r.unfinished = map[string]int{"returns": 2, "payments": 0}
	r.rounds(t, 2, figures{"unfinished returns": 2, "unfinished payments": 0})
	r.unfinished = map[string]int{"returns": 0, "payments": 0}
	r.rounds(t, 1, figures{"unfinished returns": 0, "unfinished payments": 0})
}

func TestARoundThatCannotLookSaysSo(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	r := setup()
	r.uncounted = away
	if _, err := r.Step(t.Context()); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
}
