package notice

import (
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/noticechoice"
	"seckill/ent/predicate"
	"seckill/ent/pushsubscription"
	"seckill/ent/session"
	"seckill/ent/user"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

const (
	// maxDevices bounds the browsers of a user; the oldest is replaced.
	maxDevices = 10
	// maxLabel bounds the label of a browser in characters.
	maxLabel = 100
	// authBytes is the length of the secret of a browser (RFC 8291, section 3.2).
	authBytes = 16
)

// Subscription is what a browser subscribed with. The keys are base64url.
type Subscription struct {
	Endpoint, P256dh, Auth string
	Label                  string // by which the user recognises the browser
}

// Device is a browser that gets notices.
type Device struct {
	ID        id.Device
	Endpoint  string // at its push service
	Label     string
	CreatedAt time.Time
	SentAt    *time.Time // when the push service last accepted a notice
}

// PushKey returns the public key that browsers subscribe with; "" without the channel.
func (s *Service) PushKey() string {
	if s.push == nil {
		return ""
	}
	return s.push.web.PublicKey
}

// active matches subscriptions that get notices: their session was not ended, and their
// browser accepts the key of the shop.
func (s *Service) active() predicate.PushSubscription {
	return pushsubscription.And(pushsubscription.ServerKey(s.PushKey()), pushsubscription.Not(signedOut))
}

// signedOut matches subscriptions of sessions that were ended, in SQL too. A session that
// expired was not: it does so half an hour after the last tab was closed.
func signedOut(q *sql.Selector) {
	ended := sql.Table(session.Table).As("session")
	q.Where(sql.Exists(sql.Dialect(q.Dialect()).Select(ended.C(session.FieldID)).From(ended).Where(sql.And(
		sql.ColumnsEQ(ended.C(session.FieldID), q.C(pushsubscription.FieldSessionID)),
		sql.NotNull(ended.C(session.FieldRevokedAt)),
	))))
}

// SignedOut removes the browser of a session that ends, in the caller's transaction.
func SignedOut(ctx context.Context, tx *ent.Tx, sessionID id.Session) error {
	if _, err := tx.PushSubscription.Delete().Where(pushsubscription.SessionID(sessionID)).Exec(ctx); err != nil {
		return fmt.Errorf("remove the browser of a session: %w", err)
	}
	return nil
}

// SignedOutElsewhere removes the browsers of a user whose sessions end except keep, also
// those of sessions that expired, in the caller's transaction.
func SignedOutElsewhere(ctx context.Context, tx *ent.Tx, userID id.User, keep id.Session) error {
	if _, err := tx.PushSubscription.Delete().Where(pushsubscription.UserID(userID), pushsubscription.SessionIDNEQ(keep)).
		Exec(ctx); err != nil {
		return fmt.Errorf("remove the browsers of a user: %w", err)
	}
	return nil
}

// Subscribe stores the browser of a session, instead of the one that the session had. The
// first browser turns the notices on, of every kind. Refusals: INVALID_INPUT; CONFLICT
// without the channel.
func (s *Service) Subscribe(ctx context.Context, userID id.User, sessionID id.Session, in Subscription) error {
	if s.push == nil {
		return fault.Refused{Why: fault.Conflict, At: []string{}}
	}
	if err := s.CheckSubscription(in); err != nil {
		return err
	}
	row := in.row()
	subscribe := func(ctx context.Context, tx *ent.Tx) error {
		if s.cfg.DB.Dialect == dialect.Postgres { // other requests of the user wait
			if _, err := tx.User.Query().Where(user.ID(userID)).ForUpdate().Only(ctx); err != nil {
				return err
			}
		}
		same := pushsubscription.Or(pushsubscription.Endpoint(row.Endpoint), pushsubscription.SessionID(sessionID))
		if _, err := tx.PushSubscription.Delete().Where(same).Exec(ctx); err != nil {
			return err
		}
		mine := pushsubscription.UserID(userID)
		newest, err := tx.PushSubscription.Query().Where(mine).Order(ent.Desc(pushsubscription.FieldID)).
			Limit(maxDevices - 1).IDs(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.PushSubscription.Delete().Where(mine, pushsubscription.IDNotIn(newest...)).Exec(ctx); err != nil {
			return err
		}
		err = tx.PushSubscription.Create().SetID(id.New[id.Device]()).SetUserID(userID).SetSessionID(sessionID).
			SetEndpoint(row.Endpoint).SetP256dh(row.P256dh).
			SetAuth(row.Auth).SetServerKey(s.push.web.PublicKey).SetLabel(row.Label).SetCreatedAt(s.now()).Exec(ctx)
		if err != nil {
			return err
		}
		return s.turnOn(ctx, tx, userID)
	}
	err := s.cfg.DB.WithTx(ctx, subscribe)
	if postgres.IsUnique(err) { // another request stored the endpoint, or the first choice
		err = s.cfg.DB.WithTx(ctx, subscribe)
	}
	if err != nil {
		return fmt.Errorf("subscribe a browser: %w", err)
	}
	return nil
}

// turnOn turns on the notices of a user in browsers, of every kind, unless one is on.
func (s *Service) turnOn(ctx context.Context, tx *ent.Tx, userID id.User) error {
	rows, err := tx.NoticeChoice.Query().Where(noticechoice.UserID(userID)).All(ctx)
	if err != nil {
		return err
	}
	choices := make([]Choice, len(Kinds()))
	for i, kind := range Kinds() {
		choices[i] = choiceOf(rows, userID, kind)
		if choices[i].Push {
			return nil
		}
		choices[i].Push = true
	}
	for _, c := range choices {
		if err := s.set(ctx, tx, userID, c); err != nil {
			return err
		}
	}
	return nil
}

// CheckSubscription returns all faults of what a browser subscribed with; nil without the
// channel.
func (s *Service) CheckSubscription(in Subscription) error {
	if s.push == nil {
		return nil
	}
	var keyFault, secretFault, labelFault error
	row := in.row()
	if _, err := ecdh.P256().NewPublicKey(row.P256dh); err != nil {
		keyFault = fault.BadField{At: []string{"p256dh"}, Rule: fault.Rule{Code: "public key of P-256 in base64url"}}
	}
	if len(row.Auth) != authBytes {
		secretFault = fault.BadField{At: []string{"auth"}, Rule: fault.Rule{Code: "16 bytes in base64url"}}
	}
	if rule := fault.Line(row.Label, 0, maxLabel); rule != (fault.Rule{}) {
		labelFault = fault.BadField{At: []string{"label"}, Rule: rule}
	}
	return fault.All(s.push.check(in.Endpoint), keyFault, secretFault, labelFault)
}

// row returns what is stored; keys that are not base64url are nil.
func (in Subscription) row() *ent.PushSubscription {
	return &ent.PushSubscription{Endpoint: in.Endpoint, P256dh: decode(in.P256dh), Auth: decode(in.Auth),
		Label: typed.Line(in.Label)}
}

// decode reads base64url, which some browsers pad; nil if it is not.
func decode(text string) []byte {
	read, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	return read
}

// Unsubscribe removes a browser of a user. Removing it again changes nothing.
func (s *Service) Unsubscribe(ctx context.Context, userID id.User, device id.Device) error {
	if _, err := s.cfg.DB.Ent.PushSubscription.Delete().
		Where(pushsubscription.ID(device), pushsubscription.UserID(userID)).Exec(ctx); err != nil {
		return fmt.Errorf("remove a browser: %w", err)
	}
	return nil
}

// Devices returns the browsers that get notices of a user, the newest first.
func (s *Service) Devices(ctx context.Context, userID id.User) ([]Device, error) {
	if s.push == nil {
		return []Device{}, nil
	}
	rows, err := s.cfg.DB.Ent.PushSubscription.Query().Where(pushsubscription.UserID(userID), s.active()).
		Order(ent.Desc(pushsubscription.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read browsers: %w", err)
	}
	devices := collect.Map(rows, func(row *ent.PushSubscription) Device {
		return Device{ID: row.ID, Endpoint: row.Endpoint, Label: row.Label, CreatedAt: row.CreatedAt,
			SentAt: row.SentAt}
	})
	return devices, nil
}

// subscriptionsOf returns the ids of the subscriptions that get notices, by user.
func (s *Service) subscriptionsOf(ctx context.Context, tx *ent.Tx, users []id.User) (map[id.User][]id.Device, error) {
	if s.push == nil {
		return nil, nil
	}
	rows, err := tx.PushSubscription.Query().Where(pushsubscription.UserIDIn(users...), s.active()).
		Select(pushsubscription.FieldID, pushsubscription.FieldUserID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read subscriptions: %w", err)
	}
	subscriptions := map[id.User][]id.Device{}
	for _, row := range rows {
		subscriptions[row.UserID] = append(subscriptions[row.UserID], row.ID)
	}
	return subscriptions, nil
}

// StoredDevice is a browser as its user reads it, without its keys and its address.
type StoredDevice struct {
	Service   string     `json:"pushService"` // host name
	Label     string     `json:"label"`
	CreatedAt time.Time  `json:"createdAt"`
	SentAt    *time.Time `json:"lastNoticeAt"`
}

func storedDevices(ctx context.Context, db *ent.Client, userID id.User) ([]StoredDevice, error) {
	rows, err := db.PushSubscription.Query().Where(pushsubscription.UserID(userID)).Limit(maxDevices).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read browsers: %w", err)
	}
	devices := make([]StoredDevice, len(rows))
	for i, row := range rows {
		devices[i] = StoredDevice{Label: row.Label, CreatedAt: row.CreatedAt, SentAt: row.SentAt}
		if u, err := url.Parse(row.Endpoint); err == nil {
			devices[i].Service = u.Hostname()
		}
	}
	return devices, nil
}

// purgeSubscriptions deletes the subscriptions of sessions that were ended in SQL.
func (s *Service) purgeSubscriptions(ctx context.Context) (map[string]int, error) {
	return s.cfg.DB.Purge(ctx, "push_subscriptions_deleted", pushsubscription.Table, signedOut)
}
