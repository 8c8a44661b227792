package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/accountlink"
	"seckill/internal/identity/person"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/ratelimit"
)

// Lives of links.
const (
	verifyLife = 24 * time.Hour
	changeLife = time.Hour
	resetLife  = 30 * time.Minute
)

// linkBytes is the length of the secret in a link: it cannot be guessed.
const linkBytes = 32

// Limits of e-mails: per mailbox, so that none is flooded through many addresses or accounts,
// and per network.
var (
	mailsPerMailbox  = ratelimit.Policy{Name: "account_mails", Burst: 3, PerSecond: 3.0 / 3600, Mode: ratelimit.FailClosed}
	resetsPerAddress = ratelimit.Policy{Name: "reset_address", Burst: 10, PerSecond: 0.02, Mode: ratelimit.FailClosed}
)

// SendsLinks reports whether links are sent to e-mail addresses or phone numbers. Requests
// for others are refused with MAIL_UNAVAILABLE.
func (s *Service) SendsLinks() bool { return s.cfg.Mail != nil || s.cfg.Texts != nil }

// NoTexts refuses, with MAIL_UNAVAILABLE, to send a link to a phone number where no service
// takes one.
type NoTexts struct{ fault.Refused }

// outbox returns what reaches an address or a number; nil = nothing does.
func (s *Service) outbox(account string) *mail.Outbox {
	return outboxOf(account, s.cfg.Mail, s.cfg.Texts)
}

func outboxOf(account string, mails, texts *mail.Outbox) *mail.Outbox {
	switch {
	case isEmail(account):
		return mails
	case strings.HasPrefix(account, "+"):
		return texts
	}
	return nil
}

// reachable refuses addresses and numbers that nothing reaches. The refusal depends on the
// form of the account only, and does not reveal whether there is one.
func (s *Service) reachable(account, field string) error {
	if s.outbox(account) != nil {
		return nil
	}
	refusal := fault.Refused{Why: fault.MailUnavailable, At: []string{field}}
	switch {
	case strings.HasPrefix(account, "+"):
		return NoTexts{refusal}
	case isEmail(account) || s.cfg.Mail == nil && s.cfg.Texts == nil:
		return refusal
	}
	return nil
}

// RequestEmailInput names the contact to verify.
type RequestEmailInput struct {
	Email    string // or a phone number
	Password string // the present one, for another address than the account's
	Code     string // one-time or recovery code, likewise; "" = none was sent
	Language locale.Language
	Addr     netip.Addr // of the client
}

// RequestEmail sends a link to an e-mail address or a phone number. Using it verifies the
// account's own contact; another one becomes the account's. Nothing is sent to a contact
// that is verified.
// Refusals: MAIL_UNAVAILABLE, BadField, fault.Throttled, and those of a wrong password,
// see ChangePassword.
func (s *Service) RequestEmail(ctx context.Context, p *auth.Principal, in RequestEmailInput) error {
	address, ok := s.store.names.Normalise(in.Email)
	if err := s.reachable(address, "email"); err != nil {
		return err
	}
	if !ok {
		return badField("email", s.store.names.rule())
	}
	user, err := s.signedIn(ctx, p)
	if err != nil {
		return err
	}
	undeliverable, err := mail.Undeliverable(ctx, s.store.db.Ent.Mail, address)
	if err != nil {
		return err
	}
	if undeliverable {
		return badField("email", fault.DeliverableEmail)
	}
	link := newLink{user: user.ID, purpose: accountlink.PurposeVERIFY, to: address, language: in.Language}
	if address == user.Account && user.Verified {
		return nil
	}
	if address != user.Account {
		link.purpose = accountlink.PurposeCHANGE
		if err := s.present(ctx, p, user, presented{password: in.Password, field: "currentPassword", code: in.Code,
			from: in.Addr}, nil); err != nil {
			return err
		}
	}
	allowed, err := s.mayMail(ctx, address)
	if err != nil {
		return err
	}
	if err := allowed.Refusal(); err != nil {
		return err
	}
	return s.store.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.mailLink(ctx, tx, link) })
}

// ConfirmEmail uses a link of RequestEmail or Register and returns the verified address. A
// used link of an address that is verified returns it again: people open links twice.
// Refusals: LINK_INVALID, and ACCOUNT_TAKEN when another account has the new address.
func (s *Service) ConfirmEmail(ctx context.Context, token string, from netip.Addr) (string, error) {
	if err := s.limit(ctx, loginsPerAddress, from); err != nil {
		return "", err
	}
	former := ""
	changed, err := s.cfg.Admin.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		link, err := s.useLink(ctx, tx, token, accountlink.PurposeVERIFY, accountlink.PurposeCHANGE)
		if fault.ReasonOf(err) == fault.LinkInvalid {
			if row, known := verifiedBy(ctx, tx, token); known {
				former = row.Account
				return row, nil
			}
		}
		if err != nil {
			return nil, err
		}
		row, err := tx.User.Get(ctx, *link.UserID)
		if err != nil {
			return nil, err
		}
		update := tx.User.UpdateOneID(row.ID).AddVersion(1).SetVerifiedAt(s.cfg.Clock.Now())
		former = row.Account
		switch {
		case row.Account == link.Address:
			return update.Save(ctx)
		case link.Purpose == accountlink.PurposeVERIFY: // the account has another address by now
			return nil, refused(fault.LinkInvalid, "token")
		}
		if err := s.cfg.Admin.notify(ctx, tx, row, mail.AddressChanged, locale.Language(row.Language)); err != nil {
			return nil, err
		}
		if err := s.cfg.Admin.voidLinks(ctx, tx, row.ID); err != nil {
			return nil, err
		}
		return update.SetAccount(link.Address).Save(ctx)
	})
	if postgres.IsUnique(err) {
		return "", refused(fault.AccountTaken, "token")
	}
	if err != nil || changed == nil {
		return "", err
	}
	if former != changed.Account {
		s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventAddressChanged, Actor: changed.ID, Subject: changed.ID,
			Addr: from})
	}
	return changed.Account, nil
}

// verifiedBy returns the user whose present address a used link has verified.
func verifiedBy(ctx context.Context, tx *ent.Tx, token string) (row *ent.User, ok bool) {
	link, err := tx.AccountLink.Query().Where(
		accountlink.TokenHash(linkHash(token)), accountlink.PurposeIn(accountlink.PurposeVERIFY, accountlink.PurposeCHANGE),
		accountlink.UserIDNotNil(), accountlink.UsedAtNotNil(),
	).Only(ctx)
	if err != nil {
		return nil, false
	}
	row, err = tx.User.Get(ctx, *link.UserID)
	return row, err == nil && row.Account == link.Address && row.VerifiedAt != nil
}

// RequestResetInput names the account whose password was forgotten.
type RequestResetInput struct {
	Account  string
	Language locale.Language
	Addr     netip.Addr // of the client
}

// RequestReset sends a link to choose a password, if there is such an account with an
// address or number that is reached. Neither the answer nor its duration reveals whether there is one, or
// whether the limit of its mailbox is reached. Refusals: MAIL_UNAVAILABLE,
// fault.Throttled.
func (s *Service) RequestReset(ctx context.Context, in RequestResetInput) error {
	account := s.store.names.lookup(in.Account)
	if err := s.reachable(account, "account"); err != nil {
		return err
	}
	if err := s.limit(ctx, resetsPerAddress, in.Addr); err != nil {
		return err
	}
	allowed, err := s.mayMail(ctx, account)
	if err != nil {
		return err
	}
	user, _, err := s.store.byAccount(ctx, account)
	if err != nil {
		return err
	}
	link := newLink{purpose: accountlink.PurposeRESET, language: in.Language}
	if user != nil && !user.Disabled && s.outbox(user.Account) != nil && allowed.Allowed {
		link.user, link.to = user.ID, user.Account
	}
	if err := s.store.db.WithTx(ctx, func(ctx context.Context,
		tx *ent.Tx) error {
		return s.mailLink(ctx, tx, link)
	}); err != nil {
		return err
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventResetRequested, Subject: link.user, Addr: in.Addr})
	return nil
}

// ResetPasswordInput holds a link and the new password.
type ResetPasswordInput struct {
	Token    string
	Next     string
	Language locale.Language
	Addr     netip.Addr // of the client
}

// ResetPassword uses a link of RequestReset: it sets the password and ends all sessions of
// the user, whose number it returns. One-time codes of an account whose contact was not
// verified before are removed: another person may have registered it. Others stay.
// Refusals: LINK_INVALID, BadField, fault.Throttled.
func (s *Service) ResetPassword(ctx context.Context, in ResetPasswordInput) (int, error) {
	if err := s.limit(ctx, loginsPerAddress, in.Addr); err != nil {
		return 0, err
	}
	user, err := s.linkedUser(ctx, in.Token)
	if err != nil {
		return 0, err
	}
	next := normalisePassword(in.Next)
	if err := checkPassword(next, user.Account, "newPassword"); err != nil {
		return 0, err
	}
	leave, err := s.passwords.enqueue(proven, ratelimit.Network(in.Addr)) // the link proves more than a captcha
	if err != nil {
		return 0, err
	}
	defer leave()
	hash, err := s.passwords.hash(ctx, next)
	if err != nil {
		return 0, err
	}
	_, err = s.cfg.Admin.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		link, err := s.useLink(ctx, tx, in.Token, accountlink.PurposeRESET)
		if err != nil {
			return nil, err
		}
		update := tx.User.UpdateOneID(user.ID).AddVersion(1).SetPasswordHash(hash)
		if link.Address == user.Account {
			update.SetVerifiedAt(s.cfg.Clock.Now())
			if !user.Verified {
				clearTOTP(update)
			}
		}
		return s.cfg.Admin.passwordChanged(ctx, tx, update, in.Language)
	})
	if err != nil {
		return 0, err
	}
	// Failed attempts no longer delay the sign-in.
	if err := s.guard.succeeded(ctx, guarded{account: user.Account}); err != nil {
		return 0, fmt.Errorf("forget failures: %w", err)
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventPasswordChanged, Actor: user.ID, Subject: user.ID, Addr: in.Addr,
		Detail: "by a link"})
	return s.cfg.Admin.endAll(ctx, user.ID, id.Session{}, endedByPassword)
}

// mayMail counts a message to the mailbox of an address, or to a phone number.
func (s *Service) mayMail(ctx context.Context, to string) (ratelimit.Decision, error) {
	sum := sha256.Sum256([]byte(person.Mailbox(to)))
	return s.cfg.Limits.Allow(ctx, mailsPerMailbox, ratelimit.Subject("a:"+hex.EncodeToString(sum[:16])))
}

// newLink is a link to mail; user is Nil when there is no account, and then nothing is
// sent.
type newLink struct {
	user     id.User
	purpose  accountlink.Purpose
	to       string
	language locale.Language
}

// mailLink stores a link and writes its message.
func (s *Service) mailLink(ctx context.Context, tx *ent.Tx, l newLink) error {
	secret := make([]byte, linkBytes)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("link: %w", err)
	}
	token := base64.RawURLEncoding.EncodeToString(secret)
	m := mail.Message{User: l.user, To: l.to, Language: l.language}
	page := "/verify-email"
	switch l.purpose {
	case accountlink.PurposeVERIFY:
		m.Kind, m.Content.Life = mail.VerifyAddress, verifyLife
	case accountlink.PurposeCHANGE:
		m.Kind, m.Content.Life = mail.ChangeAddress, changeLife
	case accountlink.PurposeRESET:
		m.Kind, m.Content.Life, page = mail.ResetPassword, resetLife, "/reset-password"
	}
	now := s.cfg.Clock.Now()
	m.Content.Path, m.Until = page+"#"+token, now.Add(m.Content.Life) // browsers send nothing behind # to servers
	create := tx.AccountLink.Create().SetID(id.New[uuid.UUID]()).SetPurpose(l.purpose).SetAddress(l.to).
		SetTokenHash(linkHash(token)).
		SetCreatedAt(now).SetExpiresAt(m.Until)
	if l.user.IsZero() {
		if err := create.Exec(ctx); err != nil {
			return fmt.Errorf("store link: %w", err)
		}
		return cmp.Or(s.cfg.Mail, s.cfg.Texts).Pretend(ctx, tx, m)
	}
	if err := create.SetUserID(l.user).Exec(ctx); err != nil {
		return fmt.Errorf("store link: %w", err)
	}
	return s.outbox(l.to).Write(ctx, tx, m)
}

// useLink marks a link as used and returns it. Only one of concurrent calls succeeds. The
// refusal is LINK_INVALID.
func (s *Service) useLink(ctx context.Context, tx *ent.Tx, token string,
	purposes ...accountlink.Purpose) (*ent.AccountLink, error) {
	now := s.cfg.Clock.Now()
	n, err := tx.AccountLink.Update().Where(
		accountlink.TokenHash(linkHash(token)), accountlink.PurposeIn(purposes...), accountlink.UserIDNotNil(),
		accountlink.UsedAtIsNil(), accountlink.ExpiresAtGT(now),
	).SetUsedAt(now).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("use link: %w", err)
	}
	if n == 0 {
		return nil, refused(fault.LinkInvalid, "token")
	}
	return tx.AccountLink.Query().Where(accountlink.TokenHash(linkHash(token))).Only(ctx)
}

// linkedUser returns the user of a link to choose a password, without using it.
func (s *Service) linkedUser(ctx context.Context, token string) (*User, error) {
	invalid := refused(fault.LinkInvalid, "token")
	link, err := s.store.db.Ent.AccountLink.Query().Where(
		accountlink.TokenHash(linkHash(token)), accountlink.PurposeEQ(accountlink.PurposeRESET), accountlink.UserIDNotNil(),
		accountlink.UsedAtIsNil(), accountlink.ExpiresAtGT(s.cfg.Clock.Now()),
	).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, invalid
	}
	if err != nil {
		return nil, fmt.Errorf("read link: %w", err)
	}
	user, err := s.store.User(ctx, *link.UserID)
	if err == nil && (user == nil || user.Disabled) {
		err = invalid
	}
	return user, err
}

// PurgeLinks deletes links that expired a week ago, in batches. It is a periodic.Step.
func (s *Store) PurgeLinks(ctx context.Context) (map[string]int, error) {
	return s.db.Purge(ctx, "links_deleted", accountlink.Table, accountlink.ExpiresAtLT(s.clock.Now().Add(-purgeAfter)))
}

func linkHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// isEmail reports whether a normalised account is an e-mail address: the others are phone
// numbers.
func isEmail(account string) bool { return strings.Contains(account, "@") }
