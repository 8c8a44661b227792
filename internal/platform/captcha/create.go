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
	Sale    id.Sale // required for Seckill
	User    id.User // required for Seckill
	From    netip.Addr
	// Kind is the requested kind; "" = Text. A sale may offer other kinds only
	// (Rules.Kinds). Unless it excludes ProofOfWork, that is used if no image is
	// available.
	Kind Kind
	// Automatic makes ProofOfWork the default of Kind, where the sale lists no kinds.
	Automatic bool
}

// Create creates a challenge. For Seckill it voids the user's challenges and unused
// path token in that sale.
func (s *Service) Create(ctx context.Context, in CreateInput) (Challenge, error) {
	scope := Scope{Purpose: in.Purpose, From: in.From}
	switch in.Purpose {
	case Login, Register:
	case Seckill:
		if in.User.IsZero() {
			return Challenge{}, fault.New(fault.Unauthenticated, "Sign in to get a captcha for a sale.")
		}
		if in.Sale.IsZero() {
			return Challenge{}, fault.BadField{At: []string{"saleId"}, Rule: fault.Rule{Code: "required for SECKILL"}}
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
	c, err := s.create(ctx, scope, createOptions{kind: in.Kind, points: requestPoints})
	return c, err
}

// createOptions describes how a challenge is created.
type createOptions struct {
	kind   Kind         // requested
	keep   id.Challenge // challenge that stays open beside it; Nil = it voids all others and their path token
	points int          // penalty points that it adds
}

// create stores a new challenge.
func (s *Service) create(ctx context.Context, scope Scope, o createOptions) (Challenge, error) {
	rules, err := s.rules(ctx, scope.Sale)
	if err != nil {
		return Challenge{}, err
	}
	expires := s.cfg.Clock.Now().Add(s.cfg.Life)
	challenge := scope.name()
	penalties := s.penalties(scope, id.ShardOf(id.Sale(challenge)))
	p, err := s.pose(ctx, rules, poseInput{challenge: challenge, kind: o.kind, byLevel: len(penalties) > 0})
	if err != nil {
		return Challenge{}, fmt.Errorf("make captcha: %w", err)
	}
	level, now, err := s.store(ctx, scope, challenge, stored{createOptions: o, posed: p, penalties: penalties})
	if err != nil {
		return Challenge{}, unavailable("store captcha", err)
	}
	if !scope.Sale.IsZero() && s.cfg.Counts != nil {
		s.cfg.Counts.Posed(scope.Sale)
	}
	c := Challenge{
		ID: challenge.Public(), Kind: p.kind, Image: p.image, ExpiresAt: expires,
		Early: !scope.Sale.IsZero() && now.Before(rules.Opens),
	}
	switch p.kind {
	case Text, Math:
	case External:
		c.Parameters, err = s.cfg.Outside.parameters()
	case ProofOfWork:
		c.Parameters, err = s.parameters(p.works[level-1], expires)
	}
	return c, err
}

// stored is the input of the script.
type stored struct {
	createOptions
	posed
	penalties []penalty
}

// store runs the script and returns the level of difficulty, from 1 to the number of
// answers, and the time by Redis.
func (s *Service) store(ctx context.Context, scope Scope, challenge id.Challenge, in stored) (level int, now time.Time, err error) {
	kept := ""
	if !in.keep.IsZero() {
		kept = in.keep.String()
	}
	keys := []string{s.Key(scope, challenge)}
	args := []any{challenge.String(), string(in.posed.kind), s.cfg.Life.Milliseconds(), kept, in.points, freePenalty.Milliseconds(), levels}
	for _, answer := range in.answers {
		args = append(args, s.mac(scope, challenge, answer))
	}
	for _, h := range in.penalties {
		keys = append(keys, h.key)
		args = append(args, h.decay.Milliseconds())
	}
	reply, err := createScript.Run(ctx, s.cfg.Client, keys, args...).Int64Slice()
	if err != nil {
		return 0, time.Time{}, err
	}
	if len(reply) != 2 {
		return 0, time.Time{}, fmt.Errorf("captcha script replied %d values", len(reply))
	}
	return min(int(reply[0]), len(in.answers)), time.UnixMilli(reply[1]), nil
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
	return fault.Wrap(fault.Unavailable, "Captchas are not available now. Please try again shortly.", fmt.Errorf("%s: %w", doing, err))
}
