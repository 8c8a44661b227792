package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/ent/useridentity"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// maxSubject bounds the subject of a provider, as OpenID Connect does.
const maxSubject = 255

// External is a user as another provider names them.
type External struct {
	Issuer  string
	Subject string // unique at the issuer, for ever
	Email   string // verified by the provider; "" = none
	Name    string // to show; "" = the part of the address before @
	// ExternalID is the id of the customer in the shop's own systems; "" = unknown. It is
	// stored with a customer without one, unless it is another user's.
	ExternalID string
	Claims     Claims     // of those that access rules may name
	Role       *auth.Role // nil = the provider does not decide about roles
	Addr       netip.Addr // of the client
}

// AdmitExternal decides whether a callback may cost its provider a request: it counts the
// client's address, and uses up the callback's state, which is new for life. first is false
// for a state that was used before. Refusal: fault.Throttled.
func (s *Service) AdmitExternal(ctx context.Context, from netip.Addr, state string, life time.Duration) (first bool,
	err error) {
	if err := s.limit(ctx, loginsPerAddress, from); err != nil {
		return false, err
	}
	hash := sha256.Sum256([]byte(state))
	first, err = s.cfg.Redis.SetNX(ctx, s.cfg.Prefix+"oidc:"+hex.EncodeToString(hash[:16]), "1", life).Result()
	if err != nil {
		return false, fmt.Errorf("use up the state of a sign-in: %w", err)
	}
	return first, nil
}

// SignInExternal opens a session for a user of another provider, and creates the account
// at the first time. An account with the same address is not taken over, because a
// provider does not prove that it is the same person: its user signs in with the password.
// The address of the account counts as verified, because the provider has verified it.
// Refusals: INVALID_INPUT without a verified address, ACCOUNT_TAKEN, INVALID_CREDENTIALS
// for a disabled user.
func (s *Service) SignInExternal(ctx context.Context, in External) (*SignedIn, error) {
	if in.Issuer == "" || in.Subject == "" || len(in.Issuer) > maxSubject || len(in.Subject) > maxSubject {
		return nil, badField("subject", fault.Rule{Code: "1 to 255 bytes"})
	}
	known, err := s.store.byIdentity(ctx, in)
	if err != nil {
		return nil, err
	}
	var signed *SignedIn
	if known == nil {
		signed, err = s.registerExternal(ctx, in)
		if postgres.IsUnique(err) { // another call was first, or the address has an account
			if known, err = s.store.byIdentity(ctx, in); err == nil && known == nil {
				err = refused(fault.AccountTaken, "account")
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if known != nil {
		if signed, err = s.signInKnown(ctx, in, known); err != nil {
			return nil, err
		}
	}
	s.adoptExternalID(ctx, in, signed.User)
	if err := s.keepClaims(ctx, in, signed.User); err != nil {
		return nil, err
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventSignIn, Actor: signed.User.ID, Subject: signed.User.ID,
		Addr: in.Addr, Detail: "with " + in.Issuer})
	return signed, nil
}

// adoptExternalID gives a customer the id that a provider names. An error is only logged:
// the next sign-in tries again.
func (s *Service) adoptExternalID(ctx context.Context, in External, u *User) {
	if in.ExternalID == "" || u.ExternalID != "" || u.Role != auth.Customer {
		return
	}
	if _, err := s.cfg.Admin.SetExternalID(ctx, u.ID, u.ID, in.ExternalID); err != nil {
		s.cfg.Log.WarnContext(ctx, "external id of a user not stored", slog.String("issuer", in.Issuer),
			slog.Any("error", err))
	}
}

// keepClaims stores what a provider states of a user, in place of what it stated before.
func (s *Service) keepClaims(ctx context.Context, in External, u *User) error {
	text := in.Claims.json()
	if text == u.Claims.json() {
		return nil
	}
	changed, err := s.cfg.Admin.change(ctx, u.ID, func(up *ent.UserUpdateOne) { up.SetClaims(text) })
	if err != nil || changed == nil {
		return fmt.Errorf("claims of a user of %s: %w", in.Issuer, err)
	}
	return nil
}

// registerExternal creates the account of a user of another provider. It has no password.
func (s *Service) registerExternal(ctx context.Context, in External) (*SignedIn, error) {
	account, ok := s.store.names.Normalise(in.Email)
	if !ok || in.Email == "" {
		return nil, badField("account", fault.Rule{Code: "e-mail address that the provider has verified"})
	}
	made := s.store.newUser(NewUser{Account: account, DisplayName: shownName(in.Name, account)}, auth.Customer)
	made.Verified = true
	if in.Role != nil {
		made.Role = *in.Role
	}
	return s.signIn(ctx, made, func(ctx context.Context, tx *ent.Tx) error {
		if err := insertUser(ctx, tx, made, ""); err != nil {
			return err
		}
		return tx.UserIdentity.Create().SetID(id.New[uuid.UUID]()).SetIssuer(in.Issuer).SetSubject(in.Subject).
			SetUserID(made.ID).
			SetCreatedAt(made.CreatedAt).Exec(ctx)
	})
}

// signInKnown opens a session for a user that was here before.
func (s *Service) signInKnown(ctx context.Context, in External, u *User) (*SignedIn, error) {
	if u.Disabled {
		s.signInFailed(ctx, u, in.Addr, userDisabled)
		return nil, refused(fault.InvalidCredentials)
	}
	if in.Role != nil && *in.Role != u.Role {
		changed, err := s.cfg.Admin.change(ctx, u.ID, func(up *ent.UserUpdateOne) { up.SetRole(user.Role(*in.Role)) })
		if err != nil || changed == nil {
			return nil, fmt.Errorf("role of a user of %s: %w", in.Issuer, err)
		}
		u = changed
		s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventRoleChanged, Subject: u.ID, Detail: string(u.Role) + " by " +
			in.Issuer})
		if _, err := s.cfg.Admin.endAll(ctx, u.ID, id.Session{}, endedByRole); err != nil {
			return nil, err
		}
	}
	if !u.Verified && u.Account == s.address(in.Email) {
		verified, err := s.cfg.Admin.change(ctx, u.ID, func(up *ent.UserUpdateOne) { up.SetVerifiedAt(s.cfg.Clock.Now()) })
		if err != nil || verified == nil {
			return nil, fmt.Errorf("verify contact of a user of %s: %w", in.Issuer, err)
		}
		u = verified
	}
	return s.signIn(ctx, u, nil)
}

// byIdentity returns the user of an identity; nil if there is none.
func (s *Store) byIdentity(ctx context.Context, in External) (*User, error) {
	row, err := s.db.Ent.UserIdentity.Query().Where(useridentity.Issuer(in.Issuer), useridentity.Subject(in.Subject)).
		Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	return s.User(ctx, row.UserID)
}

// shownName returns a name that NewUser accepts.
func shownName(name, account string) string {
	name = strings.Map(func(r rune) rune {
		if typed.Printable(r) {
			return r
		}
		return -1
	}, typed.Line(name))
	name = typed.Line(name)
	if name == "" {
		name, _, _ = strings.Cut(account, "@")
	}
	if runes := []rune(name); len(runes) > maxName {
		name = typed.Line(string(runes[:maxName]))
	}
	return name
}

// Claims are what a sign-in provider states of a user, by name: of the claims that its settings
// name, the first values.
type Claims map[string][]string

const (
	// MaxClaims bounds the claims that settings of a provider name.
	MaxClaims = 10
	// maxClaimValues bounds the values of a claim; further ones are left out.
	maxClaimValues = 20
	// maxClaimValue bounds a value, in bytes; longer ones are left out.
	maxClaimValue = 100
)

// KeptClaims returns what is kept of claims.
func KeptClaims(stated map[string][]string) Claims {
	kept := Claims{}
	for name, values := range stated {
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" || len(v) > maxClaimValue })
		slices.Sort(values)
		if values = slices.Compact(values); len(values) > 0 {
			kept[name] = values[:min(len(values), maxClaimValues)]
		}
	}
	return kept
}

// json returns the stored form, in which the names are sorted; "" without claims.
func (c Claims) json() string {
	if len(c) == 0 {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts
	}
	return string(text)
}

// parseClaims reads the stored form. What it cannot read is as not stated.
func parseClaims(text string) (c Claims) {
	if text != "" && json.Unmarshal([]byte(text), &c) != nil {
		return nil
	}
	return c
}

// externalIDFormat are the characters of ids of other systems: printable ASCII without
// spaces, so that no two look alike. The length is that of a subject in OpenID Connect.
var externalIDFormat = regexp.MustCompile(`^[!-~]{1,255}$`)

// ValidExternalID reports whether a text may be the id of a user in another system.
func ValidExternalID(text string) bool { return externalIDFormat.MatchString(text) }

// SetExternalID gives a user the id that the person has in another system; "" removes it.
// Setting what is set already changes nothing. Another id has to be removed first, so that
// a system does not take a user from another one by accident. Staff get none: a system
// that writes the ids of customers could otherwise sign its own user in as staff, because
// tokens of other systems name users by these ids.
// FORBIDDEN for staff. Refusals: INVALID_INPUT; NOT_FOUND; CONFLICT when another user has the id, or this one
// has another id.
func (a *Admin) SetExternalID(ctx context.Context, by, userID id.User, externalID string) (*User, error) {
	externalID = typed.Identifier(externalID)
	if externalID != "" && !ValidExternalID(externalID) {
		return nil, badField("externalId", fault.Rule{Code: "1 to 255 printable ASCII characters"})
	}
	known, err := a.cfg.Store.User(ctx, userID)
	switch {
	case err != nil:
		return nil, err
	case known == nil:
		return nil, refused(fault.Unknown, "userId")
	case known.ExternalID == externalID:
		return known, nil
	case externalID != "" && known.Role != auth.Customer:
		return nil, fault.New(fault.Forbidden, "Operators and administrators get no id of another system.")
	case known.ExternalID != "" && externalID != "":
		return nil, refused(fault.Conflict, "externalId")
	}
	changed, err := a.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		if externalID == "" {
			return tx.User.UpdateOneID(userID).AddVersion(1).ClearExternalID().Save(ctx)
		}
		return tx.User.UpdateOneID(userID).Where(user.ExternalIDIsNil()).AddVersion(1).SetExternalID(externalID).Save(ctx)
	})
	if postgres.IsUnique(err) || (err == nil && changed == nil) {
		return nil, refused(fault.Conflict, "externalId")
	}
	if err != nil {
		return nil, err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventExternalID, Actor: by, Subject: userID, Detail: externalID})
	return changed, nil
}

// ByExternalID returns the user with an id of another system; nil if there is none.
func (a *Admin) ByExternalID(ctx context.Context, externalID string) (*User, error) {
	return a.cfg.Store.byExternalID(ctx, typed.Identifier(externalID))
}

func (s *Store) byExternalID(ctx context.Context, externalID string) (*User, error) {
	row, err := s.db.Ent.User.Query().Where(user.ExternalID(externalID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read user by external id: %w", err)
	}
	return toUser(row), nil
}
