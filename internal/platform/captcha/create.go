package captcha

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// CreateInput is a request for a challenge.
type CreateInput struct {
	Purpose Purpose
	Sale    id.Sale // required for purposes of a sale
	User    id.User // required for purposes of a sale
	From    netip.Addr
	// Kind is the requested kind; "" = Text. A sale may offer other kinds only
	// (Rules.Kinds). Unless it excludes ProofOfWork, that is used if no image is
	// available.
	Kind Kind
	// Automatic makes ProofOfWork the default of Kind, where the sale lists no kinds.
	Automatic bool
}

// Create creates a challenge. In a sale it voids the user's earlier challenges for the same
// purpose, and for Seckill the path token that was received for one: soon if this process
// created one of them, and in any case as soon as the new one is answered. It does not wait for
// Redis.
func (s *Service) Create(ctx context.Context, in CreateInput) (Challenge, error) {
	scope := Scope{Purpose: in.Purpose, From: in.From}
	switch in.Purpose {
	case Login, Register:
	case Seckill, Waitlist:
		if in.User.IsZero() {
			return Challenge{}, fault.New(fault.Unauthenticated, "Sign in to get a captcha for a sale.")
		}
		if in.Sale.IsZero() {
			return Challenge{}, fault.BadField{At: []string{"saleId"}, Rule: fault.Rule{Code: "required for " + string(in.Purpose)}}
		}
		scope.Sale, scope.User = in.Sale, in.User
	default:
		return Challenge{}, fault.BadField{At: []string{"purpose"}, Rule: fault.Rule{Code: "known purpose"}}
	}
	switch in.Kind {
	case "":
		if !in.Automatic {
			in.Kind = Text
		}
	case Text, Math, ProofOfWork, External:
	default:
		return Challenge{}, fault.BadField{At: []string{"kind"}, Rule: fault.Rule{Code: "known kind"}}
	}
	return s.create(ctx, scope, createOptions{kind: in.Kind, points: requestPoints, voids: true})
}

// createOptions describes how a challenge is created.
type createOptions struct {
	kind   Kind // requested
	points int  // penalty points that it adds
	voids  bool // it voids earlier ones and their path token
}

// create makes a new challenge.
func (s *Service) create(ctx context.Context, scope Scope, o createOptions) (Challenge, error) {
	rules, err := s.rules(ctx, scope.Sale)
	if err != nil {
		return Challenge{}, err
	}
	now := s.created()
	t, expires := token{created: now.UnixMicro(), nonce: scope.name()}, now.Add(s.cfg.Life)
	level := s.penalties.add(scope, now, o)
	p, err := s.pose(ctx, rules, poseInput{challenge: t.nonce, kind: o.kind, level: level})
	if err != nil {
		return Challenge{}, fmt.Errorf("make captcha: %w", err)
	}
	if scope.Purpose == Seckill && s.cfg.Counts != nil {
		s.cfg.Counts.Posed(scope.Sale)
	}
	t.kind = p.kind
	c := Challenge{
		ID: s.sign(scope, t, p.answer), Kind: p.kind, Image: p.image, ExpiresAt: expires,
		Early: !scope.Sale.IsZero() && now.Before(rules.Opens),
	}
	switch p.kind {
	case Text, Math:
	case External:
		c.Parameters, err = s.cfg.Outside.parameters()
	case ProofOfWork:
		c.Parameters, err = s.parameters(p.work, expires)
	}
	return c, err
}

// created returns the present time in microseconds, later than that of every challenge
// before.
func (s *Service) created() time.Time {
	for {
		last := s.newest.Load()
		now := s.cfg.Clock.Now().UnixMicro()
		if now <= last && now > last-clockDifference.Microseconds() { // else the clock was set back
			now = last + 1
		}
		if s.newest.CompareAndSwap(last, now) {
			return time.UnixMicro(now).UTC()
		}
	}
}

func (s *Service) rules(ctx context.Context, sale id.Sale) (rules Rules, err error) {
	if !sale.IsZero() && s.cfg.Sales != nil {
		rules, err = s.cfg.Sales.Captchas(ctx, sale)
	}
	rules.outside = s.cfg.Outside != nil
	if rules.PowMax == 0 {
		rules.PowMax = s.cfg.PowMax
	}
	return rules, err
}

// offered returns the kind for a request: the requested one if the sale offers it, else
// the first kind that the sale offers, else a proof of work. A request without a kind is for
// a proof of work where the sale lists no kinds, else for Text.
func (r Rules) offered(wished Kind) Kind {
	if wished == "" {
		wished = Text
		if len(r.Kinds) == 0 {
			wished = ProofOfWork
		}
	}
	can := func(kind Kind) bool {
		return kind == Text || kind == Math || kind == ProofOfWork || kind == External && r.outside
	}
	if can(wished) && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, wished)) {
		return wished
	}
	if i := slices.IndexFunc(r.Kinds, func(kind Kind) bool { return can(kind) && kind != ProofOfWork }); i >= 0 {
		return r.Kinds[i]
	}
	return ProofOfWork
}

// needsImage reports whether the sale excludes proofs of work.
func (r Rules) needsImage() bool {
	return r.offered(ProofOfWork) != ProofOfWork
}

func unavailable(doing string, err error) *fault.Error {
	return fault.Wrap(fault.Unavailable, "Captchas are not available now. Please try again shortly.",
		fmt.Errorf("%s: %w", doing, err))
}
