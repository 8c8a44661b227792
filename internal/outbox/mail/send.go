package mail

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"seckill/ent"
	entmail "seckill/ent/mail"
	"seckill/ent/predicate"
	"seckill/internal/outbox/queue"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/typed"
)

const (
	// batch bounds the e-mails that a process claims at a time.
	batch = 16
	// smtpTimeout bounds the connection to the mail server, and each of its answers.
	smtpTimeout = 10 * time.Second
	// stepTimeout bounds one connection with a batch of e-mails.
	stepTimeout = 2 * time.Minute
	// lease is how long a claimed e-mail belongs to its process. Afterwards another process
	// repeats it.
	lease = stepTimeout + smtpTimeout
	// sendEvery and idleSend bound the pause between two looks for new e-mails.
	sendEvery = 250 * time.Millisecond
	idleSend  = time.Second
	// unreachableRetry is the pause after the mail server was not reached.
	unreachableRetry = 5 * time.Second
)

// newQueue returns the queue of e-mails. One connection sends one e-mail at a time.
func newQueue(db *postgres.DB, c clock.Clock) *queue.Queue {
	return &queue.Queue{
		DB: db, Now: c.Now, Table: entmail.Table, Done: string(entmail.StateSENT), Content: entmail.FieldContent,
		Pauses: queue.Pauses{First: 10 * time.Second, Most: time.Hour}, Lease: lease, Batch: batch, Parallel: 1,
	}
}

// Config holds the dependencies of a Sender.
type Config struct {
	DB         *postgres.DB
	Keys       auth.Keys    // open the contents
	Server     *config.SMTP // nil = no e-mails are sent
	Shop       string       // address of the shop, without a slash at the end
	TLS        *tls.Config  // nil = the authorities of the system
	Subjects   Subjects     // nil = every notice is sent
	Texts      Texts        // nil = nothing is sent to phone numbers
	Clock      clock.Clock
	Registerer prometheus.Registerer // nil = metrics are not exported
	Log        *slog.Logger
}

// Subjects knows what notices are about.
type Subjects interface {
	// Holds reports whether a subject still is as the kind of its notice says.
	Holds(ctx context.Context, kind Kind, subject uuid.UUID) (bool, error)
}

// Texts sends messages to phone numbers.
type Texts interface {
	// SendText sends a message. An error is tried again until it expires.
	SendText(ctx context.Context, t Text) error
}

// Text is a message to a phone number.
type Text struct {
	ID        uuid.UUID // the same at each attempt
	User      id.User
	To        string // in E.164
	Kind      Kind
	Language  locale.Language
	Title     string
	Body      string
	URL       string // of the link
	CreatedAt time.Time
	ExpiresAt time.Time
}

// errNoAddress reports a recipient that an earlier release took as an address.
var errNoAddress = errors.New("no e-mail can be sent to this address")

// ErrNotInternational reports an address with characters that the mail server does not take.
var ErrNotInternational = errors.New("the mail server takes no addresses outside ASCII (SMTPUTF8)")

// Sender sends the e-mails of the outbox. Any number of processes share the work.
type Sender struct {
	cfg     Config
	from    *mail.Address // nil without e-mails
	sealer  auth.Sealer
	queue   *queue.Queue
	metrics metrics
}

// NewSender returns a Sender.
func NewSender(cfg Config) (*Sender, error) {
	s := &Sender{cfg: cfg, sealer: newSealer(cfg.Keys), queue: newQueue(cfg.DB, cfg.Clock)}
	s.metrics = newMetrics(cfg.Registerer, s.queue)
	if cfg.Server == nil {
		return s, nil
	}
	var err error
	if s.from, err = config.Sender(cfg.Server.From); err != nil {
		return nil, fmt.Errorf("sender of e-mails: %w", err)
	}
	return s, nil
}

// Loop returns the loop that sends.
func (s *Sender) Loop() periodic.Loop {
	return periodic.Loop{
		Name: "mail", Every: sendEvery, Idle: idleSend, Retry: unreachableRetry, Timeout: stepTimeout, Step: s.Step,
		HasWork: s.cfg.DB.AnyRows(s.queue.DueRows), Log: s.cfg.Log,
	}
}

// byText matches messages to phone numbers, and byMail the others.
var (
	byText = entmail.Not(byMail)
	byMail = entmail.RecipientContains("@")
)

// Step sends the e-mails and messages that are due, at most one batch of each. It is a
// periodic.Step. While the mail server is not reached no attempt is counted.
func (s *Sender) Step(ctx context.Context) (map[string]int, error) {
	late, err := s.giveUpLate(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{"too_late": late}
	s.metrics.ended.WithLabelValues(queue.GivenUp).Add(float64(late))
	if s.cfg.Texts != nil {
		err = s.sendTexts(ctx, counts)
	}
	if s.cfg.Server != nil {
		err = errors.Join(err, s.sendMails(ctx, counts))
	}
	return counts, err
}

func (s *Sender) sendTexts(ctx context.Context, counts map[string]int) error {
	return s.sendAll(ctx, byText, counts, func(row *ent.Mail, words text, content Content) error {
		t := Text{
			ID: row.ID, To: row.Recipient, Kind: Kind(row.Kind), Language: locale.Language(row.Language), Title: words.subject,
			Body: firstParagraph(words),
			URL:  Link(s.cfg.Shop, content.Path), CreatedAt: row.CreatedAt.UTC(), ExpiresAt: row.RetryUntil.UTC(),
		}
		if row.UserID != nil {
			t.User = *row.UserID
		}
		return s.cfg.Texts.SendText(ctx, t)
	})
}

func (s *Sender) sendMails(ctx context.Context, counts map[string]int) error {
	if due, err := s.queue.Due(ctx, byMail); err != nil || !due {
		return err
	}
	client, err := Dial(ctx, *s.cfg.Server, s.cfg.TLS)
	if err != nil {
		s.metrics.unreachable.Inc()
		return err
	}
	defer func() { _ = client.Close() }()
	return s.sendAll(ctx, byMail, counts, func(row *ent.Mail, words text, content Content) error {
		if typed.International(row.Recipient+s.from.Address) && !client.International() {
			return ErrNotInternational
		}
		msg, err := s.message(row, words, content)
		if err != nil {
			return err
		}
		return client.send(msg)
	})
}

// sendAll sends a batch of one way.
func (s *Sender) sendAll(ctx context.Context, way predicate.Mail, counts map[string]int, send sendFunc) error {
	_, err := queue.Work(ctx, s.queue, s.read, func(ctx context.Context, row *ent.Mail) error {
		attempt := queue.Attempt{ID: row.ID, Number: row.Attempts, RetryUntil: row.RetryUntil}
		outcome, err := s.queue.Try(ctx, &attempt, func(ctx context.Context) error {
			words, content, err := s.words(ctx, row)
			if err != nil {
				return err
			}
			return classify(send(row, words, content))
		})
		if err != nil {
			return err
		}
		counts[outcome]++
		s.metrics.ended.WithLabelValues(outcome).Inc()
		return nil
	}, way)
	return err
}

func (s *Sender) read(ctx context.Context, ids ...uuid.UUID) ([]*ent.Mail, error) {
	return s.cfg.DB.Ent.Mail.Query().Where(entmail.IDIn(ids...)).Order(ent.Asc(entmail.FieldID)).All(ctx)
}

// sendFunc sends one message in words.
type sendFunc func(row *ent.Mail, words text, content Content) error

// Connection is a connection to a mail server.
type Connection struct {
	client *gomail.Client
	smtp   *smtp.Client
}

// International reports whether the server takes e-mail for addresses whose name is not in
// ASCII (RFC 6531).
func (c *Connection) International() bool {
	offered, _ := c.smtp.Extension("SMTPUTF8")
	return offered
}

// Close ends the connection.
func (c *Connection) Close() error { return c.client.CloseWithSMTPClient(c.smtp) }

func (c *Connection) send(msg *gomail.Msg) error { return c.client.SendWithSMTPClient(c.smtp, msg) }

// Dial connects to a mail server, with TLS and authentication as it is set up. A nil
// tlsConfig uses the authorities of the system.
func Dial(ctx context.Context, server config.SMTP, tlsConfig *tls.Config) (*Connection, error) {
	port, err := strconv.Atoi(server.Port)
	if err != nil {
		return nil, fmt.Errorf("port of the mail server: %w", err)
	}
	options := []gomail.Option{gomail.WithPort(port), gomail.WithTimeout(smtpTimeout),
		gomail.WithTLSPolicy(gomail.TLSMandatory)}
	switch {
	case server.TLS:
		options = append(options, gomail.WithSSL())
	case server.Plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	if tlsConfig != nil {
		options = append(options, gomail.WithTLSConfig(tlsConfig))
	}
	if server.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(server.User),
			gomail.WithPassword(server.Password))
	}
	client, err := gomail.NewClient(server.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("mail server %s: %w", server.Host, err)
	}
	connected, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("mail server %s: %w", server.Host, err)
	}
	return &Connection{client, connected}, nil
}

// giveUpLate ends e-mails for which it is too late and returns their number.
func (s *Sender) giveUpLate(ctx context.Context) (n int, err error) {
	now := s.cfg.Clock.Now()
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err = tx.Mail.Update().
			Where(entmail.StateEQ(entmail.StatePENDING), entmail.DueAtLTE(now), entmail.RetryUntilLT(now)).
			SetState(entmail.StateGIVEN_UP).SetEndedAt(now).ClearContent().Save(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("give up e-mails: %w", err)
	}
	return n, nil
}

// classify marks errors that are final. Only a refusal of the recipient or of the e-mail
// itself is: others may be faults of the settings.
func classify(err error) error {
	refused, ok := errors.AsType[*gomail.SendError](err)
	switch {
	case errors.Is(err, ErrNotInternational), errors.Is(err, errNoAddress):
		return queue.Final(err)
	case !ok:
		return err
	case refused.Reason == gomail.ErrSMTPReset: // after the e-mail was accepted
		return nil
	case refused.ErrorCode() >= 500 && (refused.Reason == gomail.ErrSMTPRcptTo ||
		refused.Reason == gomail.ErrSMTPDataClose):
		return queue.Final(err)
	}
	return err
}

// words returns the text of a message, and what it is made of. The error is queue.ErrOver if
// it is outdated.
func (s *Sender) words(ctx context.Context, row *ent.Mail) (words text, content Content, err error) {
	sealed, _, err := s.sealer.Open(row.ID, row.Content)
	if err != nil {
		return words, content, err
	}
	if err := json.Unmarshal(sealed, &content); err != nil {
		return words, content, fmt.Errorf("content of an e-mail: %w", err)
	}
	if s.cfg.Subjects != nil && content.Subject != uuid.Nil { // earlier releases wrote none
		holds, err := s.cfg.Subjects.Holds(ctx, Kind(row.Kind), content.Subject)
		if err != nil {
			return words, content, fmt.Errorf("read what an e-mail is about: %w", err)
		}
		if !holds {
			return words, content, queue.ErrOver
		}
	}
	name := row.Kind
	if !strings.Contains(row.Recipient, "@") {
		name = "text_" + name
	}
	words, err = write(Kind(name), locale.Language(row.Language), s.cfg.Shop, content, s.cfg.Clock.Now())
	return words, content, err
}

// message returns an e-mail as it is sent.
func (s *Sender) message(row *ent.Mail, words text, content Content) (*gomail.Msg, error) {
	_, domain, _ := strings.Cut(s.from.Address, "@")
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	if err := msg.To(row.Recipient); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAddress, err)
	}
	msg.Subject(words.subject)
	msg.SetDateWithValue(row.CreatedAt)
	msg.SetMessageIDWithValue(row.ID.String() + "@" + domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	if content.Unsubscribe != "" {                       // RFC 2369, RFC 8058
		msg.SetGenHeader("List-Unsubscribe", "<"+s.cfg.Shop+content.Unsubscribe+">")
		msg.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	msg.SetBodyString(gomail.TypeTextPlain, words.plain)
	msg.AddAlternativeString(gomail.TypeTextHTML, words.html)
	return msg, nil
}

type metrics struct {
	ended       *prometheus.CounterVec // by outcome
	unreachable prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, q *queue.Queue) metrics {
	of := telemetry.For(reg, "mail")
	return metrics{
		ended: q.Attempts(of, "attempts_total", "Attempts to send an e-mail."),
		unreachable: of.Counter("server_failures_total",
			"Connections to the mail server that failed while e-mails were waiting."),
	}
}

// keep is the retention of e-mails that have ended.
const keep = 7 * 24 * time.Hour

// Purge deletes e-mails that ended a week ago, in batches.
func Purge(ctx context.Context, db *postgres.DB, c clock.Clock) (map[string]int, error) {
	return db.Purge(ctx, "mails_deleted", entmail.Table, entmail.EndedAtLT(c.Now().Add(-keep)))
}
