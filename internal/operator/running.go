package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seckill/ent"
	"seckill/internal/admission/captcha"
	"seckill/internal/fault"
	"seckill/internal/sale"
)

// Preheat loads a scheduled sale into Redis now. Repeating it changes nothing.
func (s *Service) Preheat(ctx context.Context, in ActInput) (*sale.Sale, fault.Refusal, error) {
	if err := authorise(in.By, sale.ActPreheat); err != nil {
		return nil, nil, err
	}
	if refusal := checkText(in.Note, maxNote, "note"); refusal != nil {
		return nil, refusal, nil
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, in.Sale)
		switch {
		case err != nil:
			return nil, nil, err
		case v == nil:
			return nil, unknown("saleId"), nil
		case v.Status.Loaded():
			return v, nil, nil
		case !sale.Allowed(sale.ActPreheat, v.Status, sale.Preheated), !s.cfg.Clock.Now().Before(v.EndsAt):
			return v, conflict("saleId"), nil
		}
		_, err = s.cfg.Load(ctx, in.Sale, in.By, in.Note)
		if err != nil && !errors.Is(err, sale.ErrForbidden) {
			return nil, nil, fault.Wrap(fault.Unavailable, "The sale could not be loaded; it is tried again by itself.", err)
		}
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	return v, conflict("saleId"), err
}

// Pause pauses a live sale; buyers see the reason.
func (s *Service) Pause(ctx context.Context, in ActInput) (*sale.Sale, fault.Refusal, error) {
	if refusal := required(&in.Note, maxNote, "note"); refusal != nil {
		return nil, refusal, nil
	}
	v, refusal, err := s.do(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActPause, note: in.Note,
		decide: s.beforeItsEnd(sale.Paused),
		set:    func(u *ent.SaleUpdate) { u.SetNotice(in.Note) },
	})
	return s.withGate(ctx, v, refusal, err)
}

// Resume resumes a paused sale.
func (s *Service) Resume(ctx context.Context, in ActInput) (*sale.Sale, fault.Refusal, error) {
	if refusal := checkText(in.Note, maxNote, "note"); refusal != nil {
		return nil, refusal, nil
	}
	v, refusal, err := s.do(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActResume, note: in.Note,
		decide: func(v *sale.Sale) (sale.Status, fault.Refusal, error) {
			if s.cfg.Clock.Now().Before(v.StartsAt) {
				return sale.Preheated, nil, nil
			}
			return s.beforeItsEnd(sale.Live)(v)
		},
		set: func(u *ent.SaleUpdate) { u.SetNotice("") },
	})
	return s.withGate(ctx, v, refusal, err)
}

// beforeItsEnd returns the status unless the sale's end time has passed: then the
// scheduler is about to end it.
func (s *Service) beforeItsEnd(to sale.Status) func(*sale.Sale) (sale.Status, fault.Refusal, error) {
	return func(v *sale.Sale) (sale.Status, fault.Refusal, error) {
		if !s.cfg.Clock.Now().Before(v.EndsAt) {
			return "", conflict("saleId"), nil
		}
		return to, nil, nil
	}
}

// End ends a sale that has begun, or cancels one that has not; buyers see the reason.
func (s *Service) End(ctx context.Context, in ActInput) (*sale.Sale, fault.Refusal, error) {
	if refusal := required(&in.Note, maxNote, "note"); refusal != nil {
		return nil, refusal, nil
	}
	if err := authorise(in.By, sale.ActEnd); err != nil {
		return nil, nil, err
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, in.Sale)
		if err != nil {
			return nil, nil, err
		}
		if v == nil {
			return nil, unknown("saleId"), nil
		}
		now := s.cfg.Clock.Now()
		what := sale.ActCancel
		if v.Status.Loaded() && !now.Before(v.StartsAt) {
			what = sale.ActEnd
		}
		after, refusal, err := s.do(ctx, act{
			by: in.By, sale: in.Sale, what: what, note: in.Note,
			decide: func(found *sale.Sale) (sale.Status, fault.Refusal, error) {
				if found.Status != v.Status {
					return "", changed{}, nil // whether to end or to cancel is decided again
				}
				return sale.Targets(what, v.Status)[0], nil, nil
			},
			set: func(u *ent.SaleUpdate) {
				u.SetNotice(in.Note)
				if v.Epoch == 0 {
					u.SetSettledAt(now) // it was never in Redis
				}
			},
		})
		if _, again := refusal.(changed); again {
			continue
		}
		return s.withGate(ctx, after, refusal, err)
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	return v, conflict("saleId"), err
}

// changed refuses a decision based on an outdated status.
type changed struct{ fault.Refused }

// withGate updates the gates after a successful operation.
func (s *Service) withGate(ctx context.Context, v *sale.Sale, refusal fault.Refusal, err error) (*sale.Sale, fault.Refusal, error) {
	if err == nil && refusal == nil {
		s.setState(ctx, v.ID)
	}
	return v, refusal, err
}

// SwitchesPatch holds the changes of switches; nil leaves a switch unchanged.
type SwitchesPatch struct {
	CaptchaRequired *bool
	CaptchaKinds    []string // nil = unchanged; empty = every kind
	PowMax          *int     // highest number of a proof of work; 0 = the server's default
	PermitRatio     *float64 // unused paths at a time per unit left; 0 = no limit
	InflowPerSecond *int
	LimitBurst      *int
	LimitPerSecond  *float64
}

// Limits of switches.
const (
	maxRatio  = 1000
	maxInflow = 1_000_000
	maxBurst  = 10_000
)

var captchaKinds = []string{"AUDIO", "EXTERNAL", "MATH", "PROOF_OF_WORK", "SLIDE", "TEXT"}

func (p SwitchesPatch) check() fault.Refusal {
	for _, kind := range p.CaptchaKinds {
		if !slices.Contains(captchaKinds, kind) {
			return invalid("known kind", "captchaKinds")
		}
	}
	if n := value(p.PowMax); n != 0 && (n < captcha.EasiestPow || n > captcha.HardestPow) {
		return invalid(fmt.Sprintf("0, or between %d and %d", captcha.EasiestPow, captcha.HardestPow), "proofOfWorkMax")
	}
	return first(
		within(p.PermitRatio, maxRatio, "permitRatio"),
		within(p.LimitPerSecond, maxBurst, "limitPerSecond"),
		inRange(value(p.InflowPerSecond), 0, maxInflow, "inflowPerSecond"),
		inRange(value(p.LimitBurst), 0, maxBurst, "limitBurst"),
	)
}

// within checks that a number is between 0 and most; NaN is refused.
func within(n *float64, most float64, path ...string) fault.Refusal {
	if n == nil || (*n >= 0 && *n <= most) {
		return nil
	}
	return invalid(fmt.Sprintf("between 0 and %g", most), path...)
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func (p SwitchesPatch) of(v sale.Switches) sale.Switches {
	set(&v.CaptchaRequired, p.CaptchaRequired)
	if p.CaptchaKinds != nil {
		v.CaptchaKinds = p.CaptchaKinds
	}
	set(&v.PowMax, p.PowMax)
	if p.PermitRatio != nil {
		v.PermitPerMille = int(*p.PermitRatio*1000 + 0.5)
	}
	set(&v.InflowPerSecond, p.InflowPerSecond)
	set(&v.LimitBurst, p.LimitBurst)
	set(&v.LimitPerSecond, p.LimitPerSecond)
	return v
}

// SetSwitches changes the admission rules of a sale, also while it is live. All processes
// apply them within a second.
func (s *Service) SetSwitches(ctx context.Context, in ActInput, p SwitchesPatch) (*sale.Sale, fault.Refusal, error) {
	if refusal := first(p.check(), checkText(in.Note, maxNote, "note")); refusal != nil {
		return nil, refusal, nil
	}
	var next sale.Switches
	return s.do(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActSwitch, note: in.Note,
		details: &next,
		decide: func(v *sale.Sale) (sale.Status, fault.Refusal, error) {
			next = p.of(v.Switches)
			return v.Status, nil, nil
		},
		set: func(u *ent.SaleUpdate) {
			u.SetCaptchaRequired(next.CaptchaRequired).SetCaptchaKinds(sale.JoinKinds(next.CaptchaKinds)).SetPowMax(next.PowMax).
				SetPermitPerMille(next.PermitPerMille).SetInflowPerSecond(next.InflowPerSecond).
				SetLimitBurst(next.LimitBurst).SetLimitPerSecond(next.LimitPerSecond)
		},
	})
}
