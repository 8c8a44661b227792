// Package issuer accepts the access tokens of other systems, such as the shop whose
// customers buy here: JWTs that are verified with the keys that their issuer publishes
// (JWKS).
//
// It owns the issuers, their keys and the cache of verified tokens. Users and sessions
// belong to package account: all tokens of a user from one issuer share a session, which
// is how they are revoked.
//
// A verified token costs no request and no query until it expires, at most for the life
// of an access token of ours: as long as ended sessions are remembered.
package issuer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"seckill/internal/identity/account"
	"seckill/internal/identity/oidc"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
)

const (
	// maxToken bounds a token, in bytes.
	maxToken = 8 << 10
	// maxCached bounds the cached verified tokens, about 400 bytes each.
	maxCached = 1 << 16
	// leeway bounds the difference of the clocks.
	leeway = 5 * time.Second
	// refreshEvery is how often the keys of an issuer are read: a removed key stops working
	// after that, and after the caches of verified tokens.
	refreshEvery = 5 * time.Minute
	// unknownEvery bounds the reads of keys because of an unknown key id, per issuer: a new
	// key works after that, and forged ids cost no more.
	unknownEvery = 10 * time.Second
	// RequestTimeout bounds one read of keys, and the wait for it.
	RequestTimeout = 3 * time.Second
)

// algorithms are the signatures that are accepted. None is symmetric: a published key
// never verifies.
var algorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

// Config holds the dependencies of a Service.
type Config struct {
	Issuers  []Issuer
	Accounts *account.Service // admits the users of verified tokens
	Sessions auth.Sessions
	Roles    auth.Roles // asked for staff only
	// Cached is how long a verified token is used without asking again: not longer than
	// ended sessions are remembered.
	Cached  time.Duration
	Timeout time.Duration // of one read of keys, and of the wait for it; 0 = RequestTimeout
	Clock   clock.Clock
	Log     *slog.Logger
}

// Service verifies tokens of other systems. It is safe for concurrent use.
type Service struct {
	cfg      Config
	issuers  map[string]*issuer
	verified *lru.Cache[[sha256.Size]byte, cached]
	flight   singleflight.Group
	stop     context.CancelFunc
}

type issuer struct {
	Issuer
	parser *jwt.Parser
	keys   jwt.Keyfunc
}

type cached struct {
	principal *auth.Principal
	until     time.Time
}

// New returns a Service and begins to read the keys; an issuer that cannot be reached is
// logged and asked again. Close ends it.
func New(cfg Config) (*Service, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, RequestTimeout)
	verified, err := lru.New[[sha256.Size]byte, cached](maxCached)
	if err != nil {
		return nil, fmt.Errorf("cache of verified tokens: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{cfg: cfg, issuers: map[string]*issuer{}, verified: verified, stop: stop}
	for _, i := range cfg.Issuers {
		keys, err := s.keysOf(ctx, i)
		if err != nil {
			stop()
			return nil, fmt.Errorf("keys of %s: %w", i.Issuer, err)
		}
		s.issuers[i.Issuer] = &issuer{Issuer: i, keys: keys.Keyfunc, parser: jwt.NewParser(
			jwt.WithValidMethods(algorithms), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithIssuer(i.Issuer),
			jwt.WithAudience(i.Audience), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(), jwt.WithJSONNumber(),
			jwt.WithTimeFunc(cfg.Clock.Now),
		)}
	}
	return s, nil
}

// Close ends the reading of keys.
func (s *Service) Close() error {
	s.stop()
	return nil
}

func (s *Service) keysOf(ctx context.Context, i Issuer) (keyfunc.Keyfunc, error) {
	return keyfunc.NewDefaultOverrideCtx(ctx, []string{i.JWKS}, keyfunc.Override{
		Client: client(s.cfg.Timeout), HTTPTimeout: s.cfg.Timeout, RefreshInterval: refreshEvery,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(unknownEvery), 1), RateLimitWaitMax: s.cfg.Timeout,
		RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				s.cfg.Log.WarnContext(ctx, "keys of an issuer cannot be read", slog.String("issuer", i.Issuer),
					slog.Any("error", err))
			}
		},
	})
}

func client(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: oidc.Bounded{Next: http.DefaultTransport}}
}

// Keys reads the keys of an issuer once and returns how many of them can verify tokens.
func Keys(ctx context.Context, i Issuer) (int, error) {
	store, err := jwkset.NewStorageFromHTTP(i.JWKS, jwkset.HTTPClientStorageOptions{Client: client(RequestTimeout),
		Ctx: ctx, HTTPTimeout: RequestTimeout})
	if err != nil {
		return 0, err
	}
	keys, err := store.KeyReadAll(ctx)
	n := 0
	for _, key := range keys {
		if kind := key.Marshal().KTY; kind != jwkset.KtyOct {
			n++
		}
	}
	return n, err
}

// Knows reports whether a bearer token names one of the issuers. It proves nothing.
func (s *Service) Knows(token string) bool {
	return s != nil && len(token) <= maxToken && s.issuerOf(token) != nil
}

// issuerOf returns the issuer that a token names; nil = none of them.
func (s *Service) issuerOf(token string) *issuer {
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	text, err := jwt.NewParser().DecodeSegment(body)
	if err != nil {
		return nil
	}
	var named struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(text, &named) != nil {
		return nil
	}
	return s.issuers[named.Issuer]
}

// Verify returns the principal of a token that Knows. A token that is malformed, forged or
// expired, or whose session was ended, is a fault UNAUTHENTICATED; UNAVAILABLE means that
// its keys or its user cannot be read.
func (s *Service) Verify(ctx context.Context, token string) (*auth.Principal, error) {
	hash := sha256.Sum256([]byte(token))
	now := s.cfg.Clock.Now()
	c, ok := s.verified.Get(hash)
	if !ok || !now.Before(c.until) {
		found, err, _ := s.flight.Do(string(hash[:]), func() (any, error) {
			return s.admit(context.WithoutCancel(ctx), token, hash) // the first caller may cancel while others wait
		})
		if err != nil {
			return nil, err
		}
		c = found.(cached)
	}
	if s.cfg.Sessions.Revoked(c.principal.SessionID) {
		return nil, fault.New(fault.Unauthenticated, "The session was ended.")
	}
	if c.principal.Role == auth.Customer {
		return c.principal, nil
	}
	role, err := s.cfg.Roles.Role(ctx, c.principal.UserID)
	if err != nil {
		return nil, err
	}
	if role.AtLeast(c.principal.Role) {
		return c.principal, nil
	}
	lowered := *c.principal
	lowered.Role = role
	return &lowered, nil
}

// admit verifies a token that is not cached, and finds its user.
func (s *Service) admit(ctx context.Context, token string, hash [sha256.Size]byte) (cached, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	i := s.issuerOf(token)
	if i == nil {
		return cached{}, fault.New(fault.Unauthenticated, "The issuer of the access token is not known.")
	}
	claims := jwt.MapClaims{}
	if _, err := i.parser.ParseWithClaims(token, claims, i.keys); err != nil {
		return cached{}, refused(err)
	}
	in, err := i.holder(claims)
	if err != nil {
		return cached{}, refused(err)
	}
	user, session, err := s.cfg.Accounts.AdmitHolder(ctx, in)
	if err != nil {
		return cached{}, err
	}
	until := s.cfg.Clock.Now().Add(s.cfg.Cached)
	if in.ExpiresAt.Before(until) {
		until = in.ExpiresAt
	}
	role := auth.Customer
	if i.RoleClaim != "" {
		role = oidc.HighestRole(claims[i.RoleClaim], i.Roles)
	}
	c := cached{until: until, principal: &auth.Principal{UserID: user.ID, SessionID: session, Role: role,
		ExpiresAt: in.ExpiresAt}}
	s.verified.Add(hash, c)
	return c, nil
}

// holder returns the user that verified claims name.
func (i *issuer) holder(claims jwt.MapClaims) (account.Holder, error) {
	issued, err := claims.GetIssuedAt()
	if err != nil || issued == nil {
		return account.Holder{}, errors.Join(err, fmt.Errorf("%w: iat", jwt.ErrTokenInvalidClaims))
	}
	expires, err := claims.GetExpirationTime()
	if err != nil {
		return account.Holder{}, err
	}
	in := account.Holder{IssuedAt: issued.UTC(), ExpiresAt: expires.UTC()}
	in.Issuer = i.Issuer.Issuer
	switch id := claims[i.ExternalIDClaim].(type) {
	case string:
		in.Subject = id
	case json.Number: // many shops number their customers; a float would round long numbers to the same one
		if _, err := strconv.ParseUint(id.String(), 10, 64); err == nil {
			in.Subject = id.String()
		}
	}
	in.Name, _ = claims[i.NameClaim].(string)
	if in.Verified = oidc.IsTrue(claims[i.VerifiedClaim]); in.Verified {
		in.Email, _ = claims[i.EmailClaim].(string)
	}
	return in, nil
}

func refused(err error) error {
	if errors.Is(err, jwt.ErrTokenExpired) {
		return fault.Wrap(fault.Unauthenticated, "the access token has expired", err)
	}
	return fault.Wrap(fault.Unauthenticated, "the access token is not good", err)
}

// maxIssuers bounds the issuers: the keys of each are read again and again.
const maxIssuers = 10

// Issuer describes another system whose access tokens are accepted, as the file of
// settings has it.
type Issuer struct {
	Issuer string `json:"issuer"` // the claim iss of its tokens
	// where it publishes its keys: https://shop.example.com/.well-known/jwks.json
	JWKS            string `json:"jwks"`
	Audience        string `json:"audience"`        // that the claim aud must have
	ExternalIDClaim string `json:"externalIdClaim"` // with the id of the customer; default sub
	EmailClaim      string `json:"emailClaim"`      // default email
	// whether the contact is verified; default email_verified
	VerifiedClaim string               `json:"verifiedClaim"`
	NameClaim     string               `json:"nameClaim"` // default name
	RoleClaim     string               `json:"roleClaim"` // claim with a text or a list of texts; "" = all are customers
	Roles         map[string]auth.Role `json:"roles"`     // value of RoleClaim → highest role that the token grants
}

// Read reads the file of settings: a JSON array. Addresses need https, unless insecure.
func Read(file string, insecure bool) ([]Issuer, error) {
	return oidc.ReadList(file, maxIssuers, func(i *Issuer) (string, error) { return i.Issuer, i.complete(insecure) })
}

func (i *Issuer) complete(insecure bool) error {
	if i.Issuer == "" || len(i.Issuer) > 255 {
		return errors.New("issuer: needs 1 to 255 bytes")
	}
	if i.Audience == "" {
		return errors.New("audience: is missing; without it, tokens for other systems would be accepted")
	}
	if err := errors.Join(oidc.CheckAddress("jwks", i.JWKS, insecure), oidc.CheckRoles(i.Roles)); err != nil {
		return err
	}
	if (i.RoleClaim == "") != (len(i.Roles) == 0) {
		return fmt.Errorf("roleClaim and roles: both or none")
	}
	for claim, standard := range map[*string]string{
		&i.ExternalIDClaim: "sub", &i.EmailClaim: "email", &i.VerifiedClaim: "email_verified", &i.NameClaim: "name",
	} {
		if *claim == "" {
			*claim = standard
		}
	}
	return nil
}
