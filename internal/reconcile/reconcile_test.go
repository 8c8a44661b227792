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

	"seckill/internal/audit"
	"seckill/internal/id"
	"seckill/internal/reconcile"
	"seckill/internal/sale"
)

// figures remembers what was counted.
type figures map[string]int

func (f figures) Drift()                        { f["drift"]++ }
func (f figures) Repaired(how string)           { f[how]++ }
func (f figures) Unfinished(what string, n int) { f["unfinished "+what] = n }

// rig is a reconciler over one sale whose state the test says.
type rig struct {
	differs    bool
	report     audit.Report
	unfinished map[string]int
	seen       figures
	sale       uuid.UUID
	log        bytes.Buffer
	*reconcile.Reconciler
}

func setup() *rig {
	r := &rig{seen: figures{}}
	r.sale = uuid.New()
	v := &sale.Sale{ID: r.sale, Items: []*sale.Item{{ID: uuid.New()}}}
	r.Reconciler = reconcile.New(reconcile.Config{
		Loaded:     func(context.Context) ([]*sale.Sale, error) { return []*sale.Sale{v}, nil },
		Differ:     func(context.Context, uuid.UUID, uuid.UUID) (bool, error) { return r.differs, nil },
		Audit:      func(context.Context, uuid.UUID) (*audit.Report, error) { return &r.report, nil },
		Resend:     func(context.Context, *sale.Sale, audit.Lost) error { return nil },
		Rebuild:    func(context.Context, uuid.UUID) error { return nil },
		Unfinished: func(context.Context) (map[string]int, error) { return r.unfinished, nil },
		Meter:      r.seen, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	return r
}

func (r *rig) rounds(t *testing.T, n int, want figures) {
	t.Helper()
	clear(r.seen)
	for range n {
		if _, err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, r.seen); diff != "" {
		t.Error(diff)
	}
}

func TestDriftThatStaysIsRepairedCountedAndTold(t *testing.T) {
	t.Parallel()
	r := setup()
	r.rounds(t, 3, figures{})
	r.differs = true
	r.rounds(t, 1, figures{}) // it may be on its way
	r.rounds(t, 1, figures{}) // the audit finds nothing
	r.report = audit.Report{Drift: 2, Findings: []string{"a", "b"}}
	r.rounds(t, 1, figures{"drift": 2, "rebuilt": 1})
	if !strings.Contains(r.log.String(), "sale="+id.Format(id.Sale, r.sale)) {
		t.Errorf("the log does not name the sale as `seckill audit` takes it:\n%s", r.log.String())
	}
	r.report.Lost = []audit.Lost{{Task: uuid.New()}, {Task: uuid.New()}}
	r.rounds(t, 1, figures{"drift": 2, "resent": 2})
	r.differs = false
	r.rounds(t, 2, figures{})
}

func TestWhatOthersLeaveUndoneIsCountedInEachRound(t *testing.T) {
	t.Parallel()
	r := setup()
	r.unfinished = map[string]int{"returns": 2, "payments": 0}
	r.rounds(t, 2, figures{"unfinished returns": 2, "unfinished payments": 0})
	r.unfinished = map[string]int{"returns": 0}
	r.rounds(t, 1, figures{"unfinished returns": 0})
}

func TestARoundThatCannotLookSaysSo(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	r := reconcile.New(reconcile.Config{
		Loaded:     func(context.Context) ([]*sale.Sale, error) { return nil, nil },
		Unfinished: func(context.Context) (map[string]int, error) { return nil, away },
		Log:        slog.New(slog.DiscardHandler),
	})
	if _, err := r.Step(t.Context()); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
}
