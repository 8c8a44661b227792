package captcha

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/id"
)

// CreateInput says which challenge is wanted.
type CreateInput struct {
	Purpose Purpose
	Sale    uuid.UUID // required for Seckill
	User    uuid.UUID // who asks; required for Seckill
	// Kind is wished for; "" = Text. A sale may offer others instead (Config.Offered).
	// ProofOfWork is always granted, and given when no picture is at hand.
	Kind Kind
}

// Create makes a challenge. For Seckill it voids the person's challenges and the
// unused path in that sale.
func (s *Service) Create(ctx context.Context, in CreateInput) (Challenge, fault.Refusal, error) {
	scope := Scope{Purpose: in.Purpose}
	switch in.Purpose {
	case Login, Register:
	case Seckill:
		if in.User == uuid.Nil {
			return Challenge{}, nil, fault.New(fault.Unauthenticated, "sign in to get a captcha for a sale")
		}
		if in.Sale == uuid.Nil {
			return Challenge{}, fault.BadField{At: []string{"input", "saleId"}, Rule: "required for SECKILL"}, nil
		}
		scope.Sale, scope.User = in.Sale, in.User
	default:
		return Challenge{}, fault.BadField{At: []string{"input", "purpose"}, Rule: "known purpose"}, nil
	}
	switch in.Kind {
	case "":
		in.Kind = Text
	case Text, Math, ProofOfWork:
	default:
		return Challenge{}, fault.BadField{At: []string{"input", "kind"}, Rule: "known kind"}, nil
	}
	c, err := s.create(ctx, scope, in.Kind, uuid.Nil)
	return c, nil, err
}

// create stores a fresh challenge. keep is the challenge that stays open beside
// it, Nil when the new one voids all others and their path.
func (s *Service) create(ctx context.Context, scope Scope, kind Kind, keep uuid.UUID) (Challenge, error) {
	kind, err := s.offered(ctx, scope.Sale, kind)
	if err != nil {
		return Challenge{}, err
	}
	now := s.cfg.Clock.Now()
	challenge := id.New()
	p, err := s.pose(kind, now.Add(s.cfg.Life))
	if err != nil {
		return Challenge{}, fmt.Errorf("make captcha: %w", err)
	}
	kept := ""
	if keep != uuid.Nil {
		kept = keep.String()
	}
	err = createScript.Run(ctx, s.cfg.Client, []string{s.Key(scope, challenge)},
		challenge.String(), s.mac(scope, challenge, p.answer), string(p.kind), s.cfg.Life.Milliseconds(), kept).Err()
	if err != nil {
		return Challenge{}, unavailable("store captcha", err)
	}
	if scope.Sale != uuid.Nil && s.cfg.Posed != nil {
		s.cfg.Posed(scope.Sale)
	}
	return Challenge{
		ID: id.Format(id.Challenge, challenge), Kind: p.kind,
		Image: p.image, Parameters: p.parameters, ExpiresAt: now.Add(s.cfg.Life),
	}, nil
}

// offered returns the kind to give to somebody who wishes for one: that one, or
// the first picture that the sale offers, or a proof of work.
func (s *Service) offered(ctx context.Context, sale uuid.UUID, wished Kind) (Kind, error) {
	if wished == ProofOfWork || sale == uuid.Nil || s.cfg.Offered == nil {
		return wished, nil
	}
	kinds, err := s.cfg.Offered(ctx, sale)
	if err != nil || len(kinds) == 0 || slices.Contains(kinds, wished) {
		return wished, err
	}
	for _, kind := range kinds {
		if kind == Text || kind == Math {
			return kind, nil
		}
	}
	return ProofOfWork, nil
}

func unavailable(doing string, err error) *fault.Error {
	return fault.Wrap(fault.Unavailable, "captchas are not to be had now; try again shortly", fmt.Errorf("%s: %w", doing, err))
}
