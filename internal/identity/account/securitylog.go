package account

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/securityevent"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/ratelimit"
)

// EventKind is the type of an entry of the security log.
type EventKind string

// Kinds of security events.
const (
	EventSignIn          EventKind = "SIGN_IN"
	EventSignInFailed    EventKind = "SIGN_IN_FAILED"
	EventTokenReused     EventKind = "REFRESH_TOKEN_REUSED" // #nosec G101 -- the name of an event
	EventPasswordChanged EventKind = "PASSWORD_CHANGED"     // #nosec G101 -- the name of an event
	EventAddressChanged  EventKind = "ADDRESS_CHANGED"
	EventResetRequested  EventKind = "PASSWORD_RESET_REQUESTED" // #nosec G101 -- the name of an event
	EventPersonalData    EventKind = "PERSONAL_DATA_EXPORTED"
	EventDeleted         EventKind = "USER_DELETED"
	EventRoleChanged     EventKind = "ROLE_CHANGED"
	EventDisabled        EventKind = "USER_DISABLED"
	EventEnabled         EventKind = "USER_ENABLED"
	EventTOTPOn          EventKind = "ONE_TIME_CODES_ON"
	EventTOTPOff         EventKind = "ONE_TIME_CODES_OFF"
	EventRecoveryCode    EventKind = "RECOVERY_CODE_USED"
	EventWebhookChanged  EventKind = "WEBHOOK_ENDPOINT_CHANGED"
	EventTokenChanged    EventKind = "SERVICE_TOKEN_CHANGED" // #nosec G101 -- the name of an event
	EventWebhookForged   EventKind = "WEBHOOK_FORGED"
	EventExternalID      EventKind = "EXTERNAL_ID_CHANGED"
	EventImported        EventKind = "USERS_IMPORTED"
	EventSessionsEnded   EventKind = "SESSIONS_ENDED"
	EventExport          EventKind = "ORDERS_EXPORTED"
	EventBuyerSearch     EventKind = "BUYERS_SEARCHED"
	EventListRead        EventKind = "PERSONAL_DATA_READ"
	EventHeldSettled     EventKind = "HELD_PAYMENT_SETTLED"
	EventMembers         EventKind = "MEMBERS_CHANGED"
	EventCodes           EventKind = "CODES_EXPORTED"
)

const (
	// EventTimeout is the timeout of one write.
	EventTimeout = 2 * time.Second
	// eventLife is the retention of entries.
	eventLife = 180 * 24 * time.Hour
	// MaxLogged limits the length of a list of the security log.
	MaxLogged = 1000
	// maxDetail limits the detail, in bytes.
	maxDetail = 800
	// maxReads is how many lists that were read within the last minute are known, about 300
	// bytes each. An entry is written again for one that was forgotten.
	maxReads = 1 << 14
)

// readsLogged is how often the same reading of a list is logged, so that a page that asks
// again and again does not fill the log.
var readsLogged = ratelimit.Policy{Name: "list_read", Burst: 1, PerSecond: 1.0 / 60}

// readKey is a reading of a list: the reader, the list and its filter.
type readKey [sha256.Size]byte

// Event is an entry of the security log. It holds no secrets.
type Event struct {
	Kind    EventKind
	Actor   id.User    // who acted; Nil = the command line, or unknown
	Subject id.User    // the user affected; Nil = none
	Addr    netip.Addr // of the client; invalid = that of the request in the context
	Detail  string
	At      time.Time // set by the log
}

// SecurityLog writes and reads the security log. It is safe for concurrent use.
type SecurityLog struct {
	db    *postgres.DB
	clock clock.Clock
	log   *slog.Logger
	reads *ratelimit.Local[readKey]

	Timeout time.Duration // of one write; 0 = EventTimeout
}

// NewSecurityLog returns a SecurityLog.
func NewSecurityLog(db *postgres.DB, c clock.Clock, log *slog.Logger) *SecurityLog {
	return &SecurityLog{db: db, clock: c, log: log, reads: ratelimit.NewLocal[readKey](c, maxReads)}
}

// Write appends an entry. An error is logged together with the entry and not returned:
// the action has already happened.
func (l *SecurityLog) Write(ctx context.Context, e Event) {
	if !e.Addr.IsValid() {
		e.Addr = auth.ClientAddr(ctx)
	}
	address := ""
	if e.Addr.IsValid() {
		address = e.Addr.Unmap().String()
	}
	e.Detail = fault.Shorten(e.Detail, maxDetail)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(l.Timeout, EventTimeout))
	defer cancel()
	err := l.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.SecurityEvent.Create().SetID(id.New[uuid.UUID]()).SetKind(string(e.Kind)).SetAddress(address).
			SetDetail(e.Detail).SetCreatedAt(l.clock.Now())
		if !e.Actor.IsZero() {
			create.SetActorID(e.Actor)
		}
		if !e.Subject.IsZero() {
			create.SetSubjectID(e.Subject)
		}
		return create.Exec(ctx)
	})
	if err != nil {
		l.log.ErrorContext(ctx, "security event not written", slog.String("kind", string(e.Kind)),
			slog.String("actor", e.Actor.String()),
			slog.String("subject", e.Subject.String()), slog.String("address", address), slog.Any("error", err))
	}
}

// ListRead appends that a user or a service account read personal data of others in a
// list, once a minute in this process for the same list and filter. The filter is not
// written: it may name a person.
func (l *SecurityLog) ListRead(ctx context.Context, by id.User, list, filter string) {
	if l.reads.Allow(readsLogged, sha256.Sum256([]byte(by.String()+" "+list+" "+filter))).Allowed {
		l.Write(ctx, Event{Kind: EventListRead, Actor: by, Detail: list})
	}
}

// WebhookChanged appends a change of a webhook endpoint. It implements webhook.Security.
func (l *SecurityLog) WebhookChanged(ctx context.Context, by id.User, what string) {
	l.Write(ctx, Event{Kind: EventWebhookChanged, Actor: by, Detail: what})
}

// TokenChanged appends a change of a service token. It implements servicetoken.Security.
func (l *SecurityLog) TokenChanged(ctx context.Context, by id.User, what string) {
	l.Write(ctx, Event{Kind: EventTokenChanged, Actor: by, Detail: what})
}

// CallbacksForged appends a number of forged call-backs of a payment provider. It
// implements payment.Security.
func (l *SecurityLog) CallbacksForged(ctx context.Context, provider string, count int) {
	l.Write(ctx, Event{Kind: EventWebhookForged, Detail: fmt.Sprintf("%d at %s", count, provider)})
}

// HeldSettled appends that an operator ended money without an order that was settled
// elsewhere. It implements payment.Security.
func (l *SecurityLog) HeldSettled(ctx context.Context, by id.User, what string) {
	l.Write(ctx, Event{Kind: EventHeldSettled, Actor: by, Detail: what})
}

// Since returns the entries since a time, newest first, at most 1,000; those of one user
// if subject is not Nil.
func (l *SecurityLog) Since(ctx context.Context, since time.Time, subject id.User) ([]Event, error) {
	query := l.db.Ent.SecurityEvent.Query().Where(securityevent.CreatedAtGTE(since)).
		Order(ent.Desc(securityevent.FieldCreatedAt, securityevent.FieldID)).Limit(MaxLogged)
	if !subject.IsZero() {
		query.Where(securityevent.SubjectID(subject))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read security log: %w", err)
	}
	out := make([]Event, len(rows))
	for i, r := range rows {
		out[i] = Event{Kind: EventKind(r.Kind), Detail: r.Detail, At: r.CreatedAt.UTC()}
		if r.ActorID != nil {
			out[i].Actor = *r.ActorID
		}
		if r.SubjectID != nil {
			out[i].Subject = *r.SubjectID
		}
		out[i].Addr, _ = netip.ParseAddr(r.Address) // "" = not known
	}
	return out, nil
}

// Purge deletes entries older than 180 days, in batches. It is a periodic.Step.
func (l *SecurityLog) Purge(ctx context.Context) (map[string]int, error) {
	return l.db.Purge(ctx, "security_events_deleted", securityevent.Table,
		securityevent.CreatedAtLT(l.clock.Now().Add(-eventLife)), ent.Asc(securityevent.FieldCreatedAt))
}
