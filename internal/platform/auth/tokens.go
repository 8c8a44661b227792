package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const (
	issuer    = "seckill"
	audience  = "seckill-api"
	tokenType = "at+jwt" // RFC 9068 §2.1; rejects refresh tokens and anything else signed with the key

	// leeway limits the clock difference between two processes.
	leeway = 5 * time.Second
	// maxTokenBytes is three times the length of an issued token.
	maxTokenBytes = 1024
	// DefaultAccessLife is the lifetime of an access token. It is short, because the role
	// of a customer is not looked up and revocations are kept this long.
	DefaultAccessLife = 10 * time.Minute
	// defaultCacheSize limits the cached verified tokens, about 250 bytes each.
	defaultCacheSize = 1 << 16
)

// TokensConfig configures Tokens.
type TokensConfig struct {
	Keys       Keys
	AccessLife time.Duration // 0 = DefaultAccessLife
	CacheSize  int           // cached verified tokens; 0 = 65,536
	Clock      clock.Clock
	Sessions   Sessions // required
	Roles      Roles    // required; asked for staff tokens only
}

// Sessions knows which sessions were ended; Revocations implements it.
type Sessions interface {
	Revoked(session id.Session) bool
}

// Roles knows the roles of users; account.Directory implements it.
type Roles interface {
	// Role returns the role of a user, at most seconds old. An error that is not a fault
	// refuses the token with UNAVAILABLE.
	Role(ctx context.Context, user id.User) (Role, error)
}

// Tokens issues and verifies access tokens. It is safe for concurrent use.
type Tokens struct {
	cfg      TokensConfig
	parser   *jwt.Parser
	headers  []string // of minted tokens, one for each key
	verified *lru.Cache[[sha256.Size]byte, *Principal]
}

// claims is the content of an access token.
type claims struct {
	jwt.RegisteredClaims
	Session id.Session `json:"sid"`
	Role    Role       `json:"role"`
}

// NewTokens returns Tokens. The error wraps ErrUnfitKey if the keys were not made by
// NewKeys; another error reports a missing required field.
func NewTokens(cfg TokensConfig) (*Tokens, error) {
	if len(cfg.Keys.keys) == 0 {
		return nil, fmt.Errorf("%w: none given", ErrUnfitKey)
	}
	if cfg.Sessions == nil || cfg.Roles == nil || cfg.Clock == nil {
		return nil, errors.New("tokens need a clock, revocations and roles")
	}
	if cfg.AccessLife == 0 {
		cfg.AccessLife = DefaultAccessLife
	}
	if cfg.CacheSize == 0 {
		cfg.CacheSize = defaultCacheSize
	}
	verified, err := lru.New[[sha256.Size]byte, *Principal](cfg.CacheSize)
	if err != nil {
		return nil, fmt.Errorf("cache of verified tokens: %w", err)
	}
	headers, err := cfg.Keys.headers()
	if err != nil {
		return nil, fmt.Errorf("headers of tokens: %w", err)
	}
	return &Tokens{cfg: cfg, verified: verified, headers: headers, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithIssuer(issuer),
		jwt.WithAudience(audience),
		jwt.WithLeeway(leeway),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(cfg.Clock.Now),
	)}, nil
}

// AccessLife returns the lifetime of an access token.
func (t *Tokens) AccessLife() time.Duration { return t.cfg.AccessLife }

// MintInput is the content of an access token.
type MintInput struct {
	User    id.User
	Session id.Session
	Role    Role
	Life    time.Duration // 0 = AccessLife; a longer one is for load tools: ended sessions are not remembered that long
}

// Mint returns a signed access token and its expiry time.
func (t *Tokens) Mint(in MintInput) (token string, expiresAt time.Time, err error) {
	life := in.Life
	if life == 0 {
		life = t.cfg.AccessLife
	}
	now := t.cfg.Clock.Now().UTC().Truncate(time.Second) // JWT times are whole seconds
	expiresAt = now.Add(life).Truncate(time.Second)
	key := t.cfg.Keys.signing()
	unsigned := newToken(key.ID, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    issuer,
			Audience:  jwt.ClaimStrings{audience},
			Subject:   in.User.String(),
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(expiresAt),
		},
		Session: in.Session,
		Role:    in.Role,
	})
	token, err = unsigned.SignedString(key.Secret)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign access token: %w", err)
	}
	return token, expiresAt, nil
}

// Verify returns the principal of an access token. A token that is malformed, forged or
// expired, or whose session was ended, is a fault UNAUTHENTICATED. The principal's role
// is the lower of the token's role and the user's present role.
func (t *Tokens) Verify(ctx context.Context, token string) (*Principal, error) {
	if token == "" || len(token) > maxTokenBytes {
		return nil, unauthenticated(errors.New("length out of range"))
	}
	var buf [maxTokenBytes]byte // on the stack: this runs for each request
	hash := sha256.Sum256(buf[:copy(buf[:], token)])
	p, known := t.verified.Get(hash)
	if !known {
		var err error
		if p = t.parseMinted(token); p == nil {
			p, err = t.parse(token)
		}
		if err != nil {
			return nil, unauthenticated(err)
		}
		t.verified.Add(hash, p)
	}
	if !t.cfg.Clock.Now().Before(p.ExpiresAt.Add(leeway)) {
		t.verified.Remove(hash)
		return nil, unauthenticated(jwt.ErrTokenExpired)
	}
	if t.cfg.Sessions.Revoked(p.SessionID) {
		return nil, unauthenticated(errors.New("session was ended"))
	}
	if p.Role == Customer {
		return p, nil
	}
	return t.withRoleNow(ctx, p)
}

// withRoleNow lowers the role of a staff principal to the user's present role.
func (t *Tokens) withRoleNow(ctx context.Context, p *Principal) (*Principal, error) {
	role, err := t.cfg.Roles.Role(ctx, p.UserID)
	if err != nil {
		if _, isFault := errors.AsType[*fault.Error](err); isFault {
			return nil, err
		}
		return nil, fault.Wrap(fault.Unavailable, "Your rights cannot be checked now. Please try again shortly.", err)
	}
	if role == p.Role || role.AtLeast(p.Role) {
		return p, nil
	}
	lowered := *p
	lowered.Role = lower(p.Role, role)
	return &lowered, nil
}

// parse verifies a token that is not cached.
func (t *Tokens) parse(token string) (*Principal, error) {
	var c claims
	parsed, err := t.parser.ParseWithClaims(token, &c, t.keyFor)
	if err != nil {
		return nil, err // the parsed claims are not verified
	}
	if !parsed.Valid {
		return nil, jwt.ErrTokenUnverifiable
	}
	if err := strictSegments(token); err != nil {
		return nil, err
	}
	user, err := id.ParseUUID[id.User](c.Subject)
	if err != nil || user.IsZero() {
		return nil, fmt.Errorf("%w: sub", jwt.ErrTokenInvalidClaims)
	}
	if c.Session.IsZero() || !c.Role.Valid() || c.IssuedAt == nil {
		return nil, fmt.Errorf("%w: sid, role or iat", jwt.ErrTokenInvalidClaims)
	}
	return &Principal{UserID: user, SessionID: c.Session, Role: c.Role, ExpiresAt: c.ExpiresAt.UTC()}, nil
}

// keyFor selects the key by its id from the fixed set, after checking that the header has
// no members but alg, typ and kid: no crit, jwk, jku or x5u.
func (t *Tokens) keyFor(token *jwt.Token) (any, error) {
	if len(token.Header) != 3 {
		return nil, errors.New("unexpected header fields")
	}
	if typ, _ := token.Header["typ"].(string); typ != tokenType {
		return nil, errors.New("not an access token")
	}
	kid, _ := token.Header["kid"].(string)
	secret := t.cfg.Keys.byID(kid)
	if secret == nil {
		return nil, errors.New("unknown key")
	}
	return secret, nil
}

func unauthenticated(cause error) *fault.Error {
	if errors.Is(cause, jwt.ErrTokenExpired) && !errors.Is(cause, jwt.ErrTokenSignatureInvalid) {
		return fault.Wrap(fault.Unauthenticated, "The access token has expired. Refresh the session.", cause)
	}
	return fault.Wrap(fault.Unauthenticated, "The access token is invalid. Sign in again.", cause)
}

// maxMembers limits the members of a header or of claims; issued tokens have 3 and 7.
const maxMembers = 16

var errMembers = errors.New("members not distinct")

// strictSegments refuses a token whose header or claims contain a member twice: parsers
// disagree on which one counts (RFC 8725 §2.4, RFC 7519 §4). The token has been parsed,
// so both are well-formed JSON objects.
func strictSegments(token string) error {
	header, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	for _, segment := range [2]string{header, body} {
		raw, err := base64.RawURLEncoding.DecodeString(segment)
		if err == nil {
			err = distinctMembers(raw)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", jwt.ErrTokenMalformed, err)
		}
	}
	return nil
}

// distinctMembers checks that the members of a well-formed JSON object have distinct
// names, compared case-insensitively like the decoder does. A name with an escape is
// refused, because two spellings may be one name.
func distinctMembers(raw []byte) error {
	var names [maxMembers][]byte
	count, depth := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			text, end := jsonString(raw, i)
			i = end
			if depth != 1 || !bytes.HasPrefix(bytes.TrimLeft(raw[end+1:], " \t\r\n"), []byte(":")) {
				continue // a value, or inside one
			}
			if count == maxMembers || bytes.IndexByte(text, '\\') >= 0 {
				return errMembers
			}
			for _, seen := range names[:count] {
				if bytes.EqualFold(seen, text) {
					return errMembers
				}
			}
			names[count] = text
			count++
		}
	}
	return nil
}

// jsonString returns the content of the string that begins at raw[start], and the index
// of its closing quote.
func jsonString(raw []byte, start int) (text []byte, end int) {
	for i := start + 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return raw[start+1 : i], i
		}
	}
	return raw[start+1:], len(raw) - 1
}
