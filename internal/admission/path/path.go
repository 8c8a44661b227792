// Package path issues paths: short-lived, random rights to try for one item.
//
// A path hides the entry to the stock until the opening second and makes every
// try cost a captcha. It is bound to a person, an item and the epoch of the gate,
// good once, and used up inside the reserve script (package reservation), never
// here. The package also owns permits: how many unused paths an item has at a time.
//
// It does not own captchas, whose rule its script embeds, nor the gate, whose
// hash it only reads.
package path

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/admission/captcha"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

const (
	// DefaultLife is how long a path can be used.
	DefaultLife = time.Minute
	// tokenBytes makes a token 128 random bits: not guessed within its life.
	tokenBytes = 16
	// permitRetry is when to ask again after all permits were out: unused paths
	// are used or lapse all the time.
	permitRetry = time.Second
)

// Path is the right to try for one item.
type Path struct {
	Token     string
	ExpiresAt time.Time
}

// NoPermit refuses because as many people as the stock allows are trying already,
// or because others wait: the waiting room gives a place.
type NoPermit struct {
	Item       uuid.UUID
	RetryAfter time.Duration
}

// Reason returns TooManyTries: come back later.
func (NoPermit) Reason() fault.Reason { return fault.TooManyTries }

// Path is nil: no input is at fault.
func (NoPermit) Path() []string { return nil }

//go:embed lua/issue.lua
var issueSource string

var issueScript = redis.NewScript(reservation.GateLua + captcha.AnswerLua + issueSource)

// Config is what a Service needs.
type Config struct {
	Client   redis.UniversalClient // without retries
	Keys     reservation.Keys
	Captchas *captcha.Service
	Life     time.Duration // of a path; 0 = DefaultLife
	// Ratio is how many unused paths an item may have at a time, as a multiple of
	// the stock left, rounded up; 0 or less = any number.
	Ratio float64
}

// Service issues paths. It is safe for concurrent use.
type Service struct {
	cfg      Config
	perMille int64 // Ratio in thousandths, so that the script counts in whole numbers
}

// New returns a service.
func New(cfg Config) *Service {
	if cfg.Life == 0 {
		cfg.Life = DefaultLife
	}
	return &Service{cfg: cfg, perMille: int64(max(0, math.Round(cfg.Ratio*1000)))}
}

// IssueInput says who wants to try for what.
type IssueInput struct {
	Sale    uuid.UUID
	Item    uuid.UUID
	User    uuid.UUID
	From    netip.Addr     // where the request came from
	Captcha captcha.Answer // to a challenge made for this sale; zero = none was sent
	// Waived says that the sale needs no captcha now.
	Waived bool
	// PerMille is how many unused paths the item may have per thousand units left, 0
	// = any number; nil = the ratio of the service.
	PerMille *int
	// Queued says that everybody passes through the waiting room now: only who has
	// an unused path gets another.
	Queued bool
	// Opens is the opening by the catalogue. It only words the refusal of a sale
	// whose gate is not loaded yet; the gate decides by its own.
	Opens time.Time
}

// Issue gives a path for a right captcha answer, and uses the answer up. A second
// path voids the person's first in the sale. Refusals, in the order of the checks:
// sale.NotOpen, reservation.LimitReached (holds units already), captcha.Required
// or captcha.Invalid, reservation.NoneLeft, NoPermit. An answer is used up only by
// a path that is given. An error is a fault: UNAVAILABLE.
func (s *Service) Issue(ctx context.Context, in IssueInput) (Path, fault.Refusal, error) {
	token, err := newToken()
	if err != nil {
		return Path{}, nil, err
	}
	r, err := s.run(ctx, in, token)
	if ambiguous(ctx, err) {
		r, err = s.run(ctx, in, token) // the same token: at most one of the two did something
	}
	if err != nil {
		return Path{}, nil, fault.Wrap(fault.Unavailable, "the gate does not answer; try again shortly", fmt.Errorf("issue path: %w", err))
	}
	if r.outcome == outcomeIssued {
		expires, err := strconv.ParseInt(r.detail, 10, 64)
		if err != nil {
			return Path{}, nil, fmt.Errorf("issue path: expiry: %w", err)
		}
		return Path{Token: token, ExpiresAt: time.UnixMilli(expires).UTC()}, nil, nil
	}
	refusal, err := s.refusal(ctx, in, r)
	return Path{}, refusal, err
}

// ambiguous says whether the script may have run although it gave no answer.
func ambiguous(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	_, answered := errors.AsType[redis.Error](err)
	return !answered
}

func newToken() (string, error) {
	raw := make([]byte, tokenBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("path token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// outcome is what the script decided; see lua/issue.lua.
type outcome string

const (
	outcomeIssued     outcome = "issued"
	outcomeNotLoaded  outcome = "not_loaded"
	outcomePaused     outcome = "paused"
	outcomeNotStarted outcome = "not_started"
	outcomeEnded      outcome = "ended"
	outcomeHolding    outcome = "holding"
	outcomeLapses     outcome = "lapses"
	outcomeCaptcha    outcome = "captcha"
	outcomeSoldOut    outcome = "sold_out"
	outcomeNoPermit   outcome = "no_permit"
)

type reply struct {
	outcome outcome
	now     time.Time // Redis TIME
	opens   time.Time // zero = the gate does not say
	detail  string
}

func (s *Service) run(ctx context.Context, in IssueInput, token string) (reply, error) {
	shard := id.ShardOf(in.Sale)
	scope := in.scope()
	challenge, mac := s.cfg.Captchas.Seal(scope, in.Captcha)
	perMille := s.perMille
	if in.PerMille != nil {
		perMille = int64(*in.PerMille)
	}
	values, err := issueScript.Run(ctx, s.cfg.Client, []string{
		s.cfg.Keys.Item(shard, in.Item), s.cfg.Keys.Reservations(shard, in.Item), s.cfg.Keys.Path(shard, in.Item, in.User),
		s.cfg.Keys.Permits(shard, in.Item), s.cfg.Captchas.Key(scope, challenge), s.cfg.Keys.WaitingRoom(shard, in.Item),
		s.cfg.Keys.Expiries(shard, in.Sale, in.User),
	}, in.User.String(), token, s.cfg.Life.Milliseconds(), perMille, challenge.String(), mac, !in.Waived, in.Queued, reservation.MaxExpired).StringSlice()
	if err != nil {
		return reply{}, err
	}
	return parse(values)
}

func (in IssueInput) scope() captcha.Scope {
	return captcha.Scope{Purpose: captcha.Seckill, Sale: in.Sale, User: in.User, From: in.From}
}

func parse(values []string) (reply, error) {
	if len(values) != 4 {
		return reply{}, fmt.Errorf("path script replied %d values", len(values))
	}
	now, errNow := strconv.ParseInt(values[1], 10, 64)
	opens, errOpens := strconv.ParseInt(values[2], 10, 64)
	if err := errors.Join(errNow, errOpens); err != nil {
		return reply{}, fmt.Errorf("path script: %w", err)
	}
	r := reply{outcome: outcome(values[0]), now: time.UnixMilli(now).UTC(), detail: values[3]}
	if opens > 0 {
		r.opens = time.UnixMilli(opens).UTC()
	}
	return r, nil
}

// refusal words an outcome other than issued.
func (s *Service) refusal(ctx context.Context, in IssueInput, r reply) (fault.Refusal, error) {
	switch r.outcome {
	case outcomeNotLoaded:
		if r.now.Before(in.Opens) {
			return notOpen(sale.PhaseUpcoming, in.Opens, r.now), nil
		}
		return notOpen(sale.PhasePaused, in.Opens, r.now), nil
	case outcomePaused:
		return notOpen(sale.PhasePaused, r.opens, r.now), nil
	case outcomeNotStarted:
		return notOpen(sale.PhaseUpcoming, r.opens, r.now), nil
	case outcomeEnded:
		return notOpen(sale.PhaseEnded, time.Time{}, r.now), nil
	case outcomeHolding:
		task, err := uuid.Parse(r.detail)
		if err != nil {
			return nil, fmt.Errorf("issue path: holder of %s: %w", in.Item, err)
		}
		return reservation.LimitReached{Task: task, At: []string{"input", "itemId"}}, nil
	case outcomeLapses:
		wait, err := strconv.ParseInt(r.detail, 10, 64)
		return fault.Throttled{RetryAfter: time.Duration(wait) * time.Millisecond}, err
	case outcomeCaptcha:
		verdict, kind, _ := strings.Cut(r.detail, "|")
		return s.cfg.Captchas.Refuse(ctx, captcha.Judgement{
			Scope: in.scope(), Answer: in.Captcha, Verdict: captcha.Verdict(verdict), Kind: captcha.Kind(kind),
		})
	case outcomeSoldOut:
		return reservation.NoneLeft{Item: in.Item}, nil
	case outcomeNoPermit:
		return NoPermit{Item: in.Item, RetryAfter: permitRetry}, nil
	case outcomeIssued:
	}
	return nil, fmt.Errorf("issue path: unexpected outcome %q", r.outcome)
}

func notOpen(phase sale.Phase, opens, now time.Time) fault.Refusal {
	refusal := sale.NotOpen{Phase: phase, ServerTime: now}
	if !opens.IsZero() {
		refusal.StartsAt = &opens
	}
	return refusal
}
