package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
)

// Preheat loads a scheduled sale into Redis now. Repeating it changes nothing.
func (s *Service) Preheat(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := authorise(in.By, sale.ActPreheat); err != nil {
		return nil, err
	}
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, in.Sale)
		switch {
		case err != nil:
			return nil, err
		case v == nil:
			return nil, unknown("saleId")
		case v.Status.Loaded():
			return v, nil
		case !sale.Allowed(sale.ActPreheat, v.Status, sale.Preheated), !s.cfg.Clock.Now().Before(v.EndsAt):
			return v, conflict("saleId")
		}
		_, err = s.cfg.Gates.LoadBy(ctx, in.Sale, in.By, in.Note)
		if err != nil && !errors.Is(err, sale.ErrForbidden) {
			return nil, fault.Wrap(fault.Unavailable, "The sale could not be loaded. The scheduler tries again.", err)
		}
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	return v, cmp.Or(err, conflict("saleId"))
}

// Pause pauses a live sale; buyers see the reason.
func (s *Service) Pause(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := requireNote(&in.Note); err != nil {
		return nil, err
	}
	return s.withGate(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActPause, note: in.Note,
		decide: func(v *sale.Sale) (sale.Status, error) { return sale.Paused, s.checkNotOver(v) },
		set:    func(u *ent.SaleUpdate) { u.SetNotice(in.Note) },
	})
}

// Resume resumes a paused sale.
func (s *Service) Resume(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	return s.withGate(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActResume, note: in.Note,
		decide: func(v *sale.Sale) (sale.Status, error) {
			if s.cfg.Clock.Now().Before(v.StartsAt) {
				return sale.Preheated, nil
			}
			return sale.Live, s.checkNotOver(v)
		},
		set: func(u *ent.SaleUpdate) { u.SetNotice("") },
	})
}

// checkNotOver returns a conflict if the sale's end time has passed: the scheduler is
// about to end it.
func (s *Service) checkNotOver(v *sale.Sale) error {
	if !s.cfg.Clock.Now().Before(v.EndsAt) {
		return conflict("saleId")
	}
	return nil
}

// End ends a sale that has begun, or cancels one that has not; buyers see the reason.
func (s *Service) End(ctx context.Context, in ActInput) (*sale.Sale, error) {
	if err := requireNote(&in.Note); err != nil {
		return nil, err
	}
	if err := authorise(in.By, sale.ActEnd); err != nil {
		return nil, err
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, in.Sale)
		if err != nil {
			return nil, err
		}
		if v == nil {
			return nil, unknown("saleId")
		}
		now := s.cfg.Clock.Now()
		what := sale.ActCancel
		if v.Status.Loaded() && !now.Before(v.StartsAt) {
			what = sale.ActEnd
		}
		after, err := s.withGate(ctx, act{
			by: in.By, sale: in.Sale, what: what, note: in.Note,
			decide: func(found *sale.Sale) (sale.Status, error) {
				if found.Status != v.Status {
					return "", errOutdated // whether to end or to cancel is decided again
				}
				return sale.Targets(what, v.Status)[0], nil
			},
			set: func(u *ent.SaleUpdate) {
				u.SetNotice(in.Note)
				if v.Epoch == 0 {
					u.SetSettledAt(now) // it was never in Redis
				}
			},
		})
		if errors.Is(err, errOutdated) {
			continue
		}
		return after, err
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	return v, cmp.Or(err, conflict("saleId"))
}

// errOutdated reports that a decision was based on an outdated status.
var errOutdated = errors.New("the status of the sale has changed")

// withGate executes an operation and updates the gates after it. If they cannot be
// updated, the operation stays, and the scheduler updates them; an operation that stops a
// sale then returns UNAVAILABLE, because the gates may still sell.
func (s *Service) withGate(ctx context.Context, a act) (*sale.Sale, error) {
	v, err := s.do(ctx, a)
	if err != nil {
		return v, err
	}
	if err := s.cfg.Gates.SetState(ctx, v.ID); err != nil {
		s.cfg.Log.WarnContext(ctx, "gates follow later", slog.String("sale", v.ID.Public()), slog.Any("error", err))
		if v.Status == sale.Paused || v.Status == sale.Ended {
			return nil, fault.Wrap(fault.Unavailable,
				"The change is recorded, but the sale may go on for some seconds. Check it.", err)
		}
	}
	return v, nil
}

// SwitchesPatch holds the changes of switches; nil leaves a switch unchanged.
type SwitchesPatch struct {
	CaptchaRequired *bool
	CaptchaKinds    []string // nil = unchanged; empty = every kind
	PowMax          *int     // highest number of a proof of work; 0 = the server's default
	PermitRatio     *float64 // unused paths at a time per unit left; 0 = no limit
	InflowPerSecond *int
	ReviewAccounts  *int // accounts of a cluster whose unpaid orders are held for review; 0 = none are
	LimitBurst      *int
	LimitPerSecond  *float64
}

// Limits of switches.
const (
	maxRatio  = 1000
	maxInflow = 1_000_000
	maxBurst  = 10_000
	// maxReviewAccounts is far above what one network shares.
	maxReviewAccounts = 10_000
)

var captchaKinds = []string{"AUDIO", "EXTERNAL", "MATH", "PROOF_OF_WORK", "SLIDE", "TEXT"}

// checkKinds refuses kinds of captcha that the server cannot check.
func (s *Service) checkKinds(kinds []string, field string) error {
	if !s.cfg.ExternalCaptcha && slices.Contains(kinds, string(captcha.External)) {
		return invalid(fault.CaptchaService, field)
	}
	return nil
}

// Check returns all faults of a change of switches.
func (p SwitchesPatch) Check() error {
	var kinds, work, review error
	if n := value(p.ReviewAccounts); n != 0 && (n < order.LeastAccounts || n > maxReviewAccounts) {
		review = invalid(fault.Rule{Code: fmt.Sprintf("0, or between %d and %d", order.LeastAccounts, maxReviewAccounts)},
			"reviewAccounts")
	}
	if slices.ContainsFunc(p.CaptchaKinds, func(kind string) bool { return !slices.Contains(captchaKinds, kind) }) {
		kinds = invalid(fault.Rule{Code: "known kind"}, "captchaKinds")
	}
	if n := value(p.PowMax); n != 0 && (n < captcha.EasiestPow || n > captcha.HardestPow) {
		work = invalid(fault.Rule{Code: fmt.Sprintf("0, or between %d and %d", captcha.EasiestPow, captcha.HardestPow)},
			"proofOfWorkMax")
	}
	return fault.All(
		kinds, work, review,
		within(p.PermitRatio, maxRatio, "permitRatio"),
		within(p.LimitPerSecond, maxBurst, "limitPerSecond"),
		inRange(value(p.InflowPerSecond), 0, maxInflow, "inflowPerSecond"),
		inRange(value(p.LimitBurst), 0, maxBurst, "limitBurst"),
	)
}

// within checks that a number is between 0 and most; NaN is refused.
func within(n *float64, most float64, path ...string) error {
	if n == nil || (*n >= 0 && *n <= most) {
		return nil
	}
	return invalid(fault.Rule{Code: fmt.Sprintf("between 0 and %g", most)}, path...)
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
	set(&v.ReviewAccounts, p.ReviewAccounts)
	set(&v.LimitBurst, p.LimitBurst)
	set(&v.LimitPerSecond, p.LimitPerSecond)
	return v
}

// SetSwitches changes the admission rules of a sale, also while it is live. All processes
// apply them within a second. See alone for those that need a second person.
func (s *Service) SetSwitches(ctx context.Context, in ActInput, p SwitchesPatch) (Changed, error) {
	if err := fault.All(p.Check(), s.checkKinds(p.CaptchaKinds, "captchaKinds"),
		optional(&in.Note, maxNote, "note")); err != nil {
		return Changed{}, err
	}
	return s.setSwitches(ctx, in, p, nil)
}

func (s *Service) setSwitches(ctx context.Context, in ActInput, p SwitchesPatch, request *Intervention) (Changed,
	error) {
	var next sale.Switches
	var changed changes
	asks := storedChange{Switches: &p}
	return s.changeApproved(ctx, s.do, approvedChange{changed: &changed, asks: asks, request: request, act: act{
		by: in.By, sale: in.Sale, what: sale.ActSwitch, note: in.Note,
		decide: func(v *sale.Sale) (sale.Status, error) {
			next = p.of(v.Switches)
			changed = switchChanges(v.Switches, next)
			return v.Status, nil
		},
		set: func(u *ent.SaleUpdate) {
			setSwitches(u.Mutation(), next)
		},
	}})
}

// setSwitches sets the columns of a sale's switches.
func setSwitches(m *ent.SaleMutation, s sale.Switches) {
	m.SetCaptchaRequired(s.CaptchaRequired)
	m.SetCaptchaKinds(sale.JoinKinds(s.CaptchaKinds))
	m.SetPowMax(s.PowMax)
	m.SetPermitPerMille(s.PermitPerMille)
	m.SetInflowPerSecond(s.InflowPerSecond)
	m.SetReviewAccounts(s.ReviewAccounts)
	m.SetLimitBurst(s.LimitBurst)
	m.SetLimitPerSecond(s.LimitPerSecond)
}
