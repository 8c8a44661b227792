package account

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"entgo.io/ent/dialect"

	"seckill/ent"
	"seckill/ent/accountlink"
	entmail "seckill/ent/mail"
	"seckill/ent/order"
	"seckill/ent/refund"
	"seckill/ent/refusedattempt"
	"seckill/ent/securityevent"
	"seckill/ent/session"
	"seckill/ent/useridentity"
	"seckill/ent/waitlistentry"
	"seckill/internal/identity/recipient"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
)

// maxPersonal bounds each list of personal data. The newest entries are kept, and the
// document names the lists that have more.
const maxPersonal = 1000

// PersonalDataInput holds what the signed-in user enters to export personal data.
type PersonalDataInput struct {
	Password string
	Code     string     // one-time or recovery code; "" = none was sent
	Addr     netip.Addr // of the client
}

// PersonalData returns what is stored about the signed-in user, as a JSON document.
// Refusals: those of a wrong password or code, see ChangePassword.
func (s *Service) PersonalData(ctx context.Context, p *auth.Principal, in PersonalDataInput) ([]byte, error) {
	user, err := s.signedIn(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.present(ctx, p, user, presented{password: in.Password, field: "currentPassword", code: in.Code,
		from: in.Addr}, nil); err != nil {
		return nil, err
	}
	doc, err := s.store.personal(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("personal data: %w", err)
	}
	doc.ExportedAt = s.cfg.Clock.Now()
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventPersonalData, Actor: user.ID, Subject: user.ID, Addr: in.Addr})
	return json.MarshalIndent(doc, "", "  ")
}

type personalData struct {
	ExportedAt time.Time             `json:"exportedAt"`
	ID         string                `json:"id"`
	Account    string                `json:"account"`
	ExternalID string                `json:"externalId,omitempty"`
	Claims     Claims                `json:"claims,omitempty"`
	Name       string                `json:"displayName"`
	CreatedAt  time.Time             `json:"createdAt"`
	VerifiedAt *time.Time            `json:"verifiedAt"`
	Language   string                `json:"language"`
	Identities []personalIdentity    `json:"identities"`
	Sessions   []personalSession     `json:"sessions"`
	Addresses  []recipient.Recipient `json:"addresses"`
	Orders     []personalOrder       `json:"orders"`
	Waitlist   []personalWait        `json:"waitlist"`
	Refused    []personalRefusal     `json:"refusedAttempts"`
	Notices    notice.Stored         `json:"notices"`
	Log        []personalEvent       `json:"securityLog"`
	// Truncated names the lists that have more than maxPersonal entries.
	Truncated []string `json:"truncated"`
}

// newest returns the newest maxPersonal entries of a list, and notes when there are more.
func newest[T any](doc *personalData, name string, entries []T) []T {
	if len(entries) <= maxPersonal {
		return entries
	}
	doc.Truncated = append(doc.Truncated, name)
	return entries[:maxPersonal]
}

type personalIdentity struct {
	Issuer  string    `json:"issuer"`
	Subject string    `json:"subject"`
	Since   time.Time `json:"since"`
}

type personalSession struct {
	CreatedAt time.Time  `json:"createdAt"`
	RotatedAt time.Time  `json:"lastUsedAt"`
	EndedAt   *time.Time `json:"endedAt"`
}

type personalOrder struct {
	Number   string     `json:"number"`
	Status   string     `json:"status"`
	Item     string     `json:"itemId"`
	Quantity int        `json:"quantity"`
	Total    string     `json:"total"` // with the decimals of the currency
	Minor    int64      `json:"totalInMinorUnits"`
	Currency string     `json:"currency"`
	At       time.Time  `json:"createdAt"`
	PaidAt   *time.Time `json:"paidAt"`
	// PersonKeys are the hashes by which the limits of the sale count the buyer, and those of the network
	// and the browser, until it is settled.
	PersonKeys []string `json:"personKeys,omitempty"`
	// ReviewAnswer is what the buyer answered when the order was held for review.
	ReviewAnswer string `json:"reviewAnswer,omitempty"`
	// Recipient is to whom the order goes, where its sale required an address.
	Recipient *recipient.Recipient `json:"recipient,omitempty"`
}

type personalWait struct {
	Item   string    `json:"itemId"`
	Status string    `json:"status"`
	At     time.Time `json:"createdAt"`
}

type personalRefusal struct {
	Sale  string    `json:"saleId"`
	Stage string    `json:"stage"`
	Code  string    `json:"code"`
	Times int       `json:"times"`
	First time.Time `json:"firstAt"`
	Last  time.Time `json:"lastAt"`
}

type personalEvent struct {
	Kind    string    `json:"kind"`
	Address string    `json:"address"`
	At      time.Time `json:"at"`
}

// personal reads what is stored about a user.
func (s *Store) personal(ctx context.Context, u *User) (*personalData, error) {
	row, err := s.db.Ent.User.Get(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	doc := &personalData{
		ID: u.ID.Public(), Account: u.Account, ExternalID: u.ExternalID, Name: u.DisplayName, CreatedAt: u.CreatedAt,
		VerifiedAt: row.VerifiedAt, Language: row.Language,
		Identities: []personalIdentity{}, Sessions: []personalSession{}, Addresses: []recipient.Recipient{},
		Orders: []personalOrder{}, Waitlist: []personalWait{}, Refused: []personalRefusal{}, Log: []personalEvent{},
		Truncated: []string{},
	}
	identities, err := s.db.Ent.UserIdentity.Query().Where(useridentity.UserID(u.ID)).Limit(maxPersonal + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range newest(doc, "identities", identities) {
		doc.Identities = append(doc.Identities, personalIdentity{r.Issuer, r.Subject, r.CreatedAt})
	}
	sessions, err := s.db.Ent.Session.Query().Where(session.UserID(u.ID)).Order(ent.Desc(session.FieldID)).
		Limit(maxPersonal + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range newest(doc, "sessions", sessions) {
		doc.Sessions = append(doc.Sessions, personalSession{r.CreatedAt, r.RotatedAt, r.RevokedAt})
	}
	events, err := s.db.Ent.SecurityEvent.Query().Where(securityevent.SubjectID(u.ID)).
		Order(ent.Desc(securityevent.FieldID)).Limit(maxPersonal + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range newest(doc, "securityLog", events) {
		doc.Log = append(doc.Log, personalEvent{r.Kind, r.Address, r.CreatedAt})
	}
	return doc, s.purchases(ctx, u.ID, doc)
}

// purchases adds the orders and places on the waitlist.
func (s *Store) purchases(ctx context.Context, user id.User, doc *personalData) error {
	orders, err := s.db.Ent.Order.Query().Where(order.UserID(user)).Order(ent.Desc(order.FieldID)).Limit(maxPersonal + 1).
		All(ctx)
	if err != nil {
		return err
	}
	orders = newest(doc, "orders", orders)
	ids := collect.Map(orders, func(r *ent.Order) id.Order { return r.ID })
	recipients, err := recipient.Of(ctx, s.db.Ent.OrderRecipient, ids...)
	if err != nil {
		return err
	}
	for _, r := range orders {
		total := money.Amount{Minor: r.UnitPriceMinor, Currency: r.Currency}.Times(r.Quantity)
		one := personalOrder{
			Number: r.Number, Status: string(r.Status), Item: r.ItemID.Public(), Quantity: r.Quantity,
			Total: total.Decimal(), Minor: total.Minor, Currency: total.Currency, At: r.CreatedAt, PaidAt: r.PaidAt,
		}
		if r.PersonKeys != nil {
			one.PersonKeys = strings.Split(*r.PersonKeys, ",")
		}
		for _, key := range []*string{r.PaymentKey, r.NetworkKey, r.DeviceKey} {
			if key != nil {
				one.PersonKeys = append(one.PersonKeys, *key)
			}
		}
		if r.ReviewAnswer != nil {
			one.ReviewAnswer = *r.ReviewAnswer
		}
		if to, ok := recipients[r.ID]; ok {
			one.Recipient = &to
		}
		doc.Orders = append(doc.Orders, one)
	}
	book, err := recipient.NewBook(s.db, nil, 0).List(ctx, user)
	if err != nil {
		return err
	}
	for _, a := range book {
		doc.Addresses = append(doc.Addresses, a.Recipient)
	}
	waits, err := s.db.Ent.WaitlistEntry.Query().Where(waitlistentry.UserID(user)).Order(ent.Desc(waitlistentry.FieldID)).
		Limit(maxPersonal + 1).All(ctx)
	if err != nil {
		return err
	}
	for _, r := range newest(doc, "waitlist", waits) {
		doc.Waitlist = append(doc.Waitlist, personalWait{r.ItemID.Public(), string(r.Status), r.CreatedAt})
	}
	refused, err := s.db.Ent.RefusedAttempt.Query().Where(refusedattempt.UserID(user)).
		Order(ent.Desc(refusedattempt.FieldLastAt), ent.Desc(refusedattempt.FieldID)).Limit(maxPersonal + 1).All(ctx)
	if err != nil {
		return err
	}
	if doc.Notices, err = notice.StoredOf(ctx, s.db.Ent, user); err != nil {
		return err
	}
	for _, r := range newest(doc, "refusedAttempts", refused) {
		doc.Refused = append(doc.Refused, personalRefusal{r.SaleID.Public(), r.Stage, r.Code, r.Times, r.FirstAt, r.LastAt})
	}
	return nil
}

// DeletedPrefix begins the account names of deleted users, and of no others.
const DeletedPrefix = "deleted "

// deletionLock is the key of the advisory lock that deletions hold while they remove what
// others write about a user without a lock of the row.
const deletionLock = 0x6163636f756e74

// AwaitDeletions waits for the deletions in progress, and makes later ones wait until the
// transaction ends: one lock instead of one of each user's row. It is for Postgres only;
// SQLite has one writer.
func AwaitDeletions(ctx context.Context, tx *ent.Tx) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock_shared($1)", int64(deletionLock))
	return err
}

// DeleteInput holds what the signed-in user enters to delete the account.
type DeleteInput struct {
	Password string
	Code     string // one-time or recovery code, when sign-in needs one
	Language locale.Language
	Addr     netip.Addr // of the client
}

// Delete deletes the account of the signed-in user: address, name, password, one-time
// codes, identities, links, e-mails, choices of notices, reminders, browsers that get notices,
// delivery addresses and refused attempts. Orders stay, for the books, with the id of a user
// who can no longer be identified. Refusals: those of a wrong password, see ChangePassword;
// ONE_TIME_CODE_REQUIRED, ONE_TIME_CODE_INVALID; CONFLICT while an order waits for its
// payment or a refund, or the user is on a waitlist or in a draw. What the account bought in running sales counts
// for the next one of its contact (Purchases).
func (s *Service) Delete(ctx context.Context, p *auth.Principal, in DeleteInput) error {
	user, err := s.signedIn(ctx, p)
	if err != nil {
		return err
	}
	if user.Role != auth.Customer {
		return fault.New(fault.Forbidden, "An administrator has to remove your role first.")
	}
	if err := s.present(ctx, p, user, presented{password: in.Password, field: "currentPassword", code: in.Code,
		from: in.Addr}, nil); err != nil {
		return err
	}
	deletable := func(ctx context.Context, tx *ent.Tx) error { return unfinished(ctx, tx, user.ID) }
	if err := s.cfg.DB.WithTx(ctx, deletable); err != nil {
		return err
	}
	keep := func(context.Context, *ent.Tx) error { return nil }
	if s.cfg.Purchases != nil {
		if keep, err = s.cfg.Purchases.Keep(ctx, user); err != nil {
			return err
		}
	}
	_, err = s.cfg.Admin.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		if err := deletable(ctx, tx); err != nil {
			return nil, err
		}
		if err := keep(ctx, tx); err != nil {
			return nil, err
		}
		gone, err := s.cfg.Admin.cfg.Store.erase(ctx, tx, user.ID, "deleted by the user")
		if outbox := s.outbox(user.Account); outbox != nil && err == nil {
			m := mail.Message{To: user.Account, Kind: mail.AccountDeleted, Language: in.Language,
				Content: mail.Content{Path: "/"}}
			err = outbox.Write(ctx, tx, m)
		}
		return gone, err
	})
	if err != nil {
		return err
	}
	s.cfg.Admin.cfg.Security.Write(ctx, Event{Kind: EventDeleted, Actor: user.ID, Subject: user.ID, Addr: in.Addr})
	_, err = s.cfg.Admin.endAll(ctx, user.ID, id.Session{}, endedByDeletion)
	return err
}

// unfinished refuses with CONFLICT while money or stock of a user is on its way.
func unfinished(ctx context.Context, tx *ent.Tx, user id.User) error {
	orders, err := tx.Order.Query().
		Where(order.UserID(user), order.StatusIn(order.StatusPENDING_PAYMENT, order.StatusREFUNDING)).Exist(ctx)
	if err != nil {
		return fmt.Errorf("read open orders: %w", err)
	}
	waits, err := tx.WaitlistEntry.Query().Where(waitlistentry.UserID(user), waitlistentry.StatusIn(
		waitlistentry.StatusENTERED, waitlistentry.StatusWAITING, waitlistentry.StatusOFFERED)).Exist(ctx)
	if err != nil {
		return fmt.Errorf("read waitlist: %w", err)
	}
	ids, err := tx.Order.Query().Where(order.UserID(user)).IDs(ctx)
	if err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	refunds, err := tx.Refund.Query().
		Where(refund.OrderIDIn(ids...), refund.StatusIn(refund.StatusREQUESTED, refund.StatusSENDING, refund.StatusFAILED)).
		Exist(ctx)
	if err != nil {
		return fmt.Errorf("read refunds: %w", err)
	}
	if orders || waits || refunds {
		return refused(fault.Conflict)
	}
	return nil
}

// erase removes the personal data of a user. The new account name cannot be
// registered.
func (s *Store) erase(ctx context.Context, tx *ent.Tx, user id.User, why string) (*ent.User, error) {
	if _, err := tx.UserIdentity.Delete().Where(useridentity.UserID(user)).Exec(ctx); err != nil {
		return nil, err
	}
	if _, err := tx.AccountLink.Delete().Where(accountlink.UserID(user)).Exec(ctx); err != nil {
		return nil, err
	}
	if err := recipient.Forget(ctx, tx, user); err != nil {
		return nil, err
	}
	if err := notice.Erase(ctx, tx, user); err != nil {
		return nil, err
	}
	if _, err := tx.Mail.Delete().Where(entmail.UserID(user)).Exec(ctx); err != nil {
		return nil, err
	}
	if err := tx.Order.Update().Where(order.UserID(user), order.ReviewAnswerNotNil()).ClearReviewAnswer().
		Exec(ctx); err != nil {
		return nil, err
	}
	update := tx.User.UpdateOneID(user).AddVersion(1).SetAccount(DeletedPrefix + user.String()).SetDisplayName("–").
		SetClaims("").
		SetPasswordHash("").
		SetLanguage("").ClearVerifiedAt().ClearExternalID().SetDisabledAt(s.clock.Now()).
		SetDisabledReason(why)
	clearTOTP(update)
	changed, err := update.Save(ctx)
	if err != nil {
		return nil, err
	}
	if s.db.Dialect == dialect.Postgres {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(deletionLock)); err != nil {
			return nil, err
		}
	}
	_, err = tx.RefusedAttempt.Delete().Where(refusedattempt.UserID(user)).Exec(ctx)
	return changed, err
}
