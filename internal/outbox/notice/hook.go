package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"seckill/ent"
	"seckill/ent/noticedelivery"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/queue"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
)

const (
	// parallel is how many deliveries a process sends at a time, and sendBatch how many it
	// claims.
	parallel  = 8
	sendBatch = 4 * parallel
	// lease is how long a claimed delivery belongs to its process: as long as all attempts of
	// a batch take.
	lease = (sendBatch/parallel + 1) * webhook.AttemptTimeout
	// sendEvery and idleSend bound the pause between two looks for deliveries.
	sendEvery = 250 * time.Millisecond
	idleSend  = time.Second
)

func (s *Service) newQueue() *queue.Queue {
	return &queue.Queue{
		DB: s.cfg.DB, Now: s.now, Table: noticedelivery.Table, Done: string(noticedelivery.StateSENT),
		Content: noticedelivery.FieldPayload,
		Pauses:  queue.Pauses{First: 5 * time.Second, Most: 10 * time.Minute}, Lease: lease, Batch: sendBatch,
		Parallel: parallel,
	}
}

// hook is the operator's service.
type hook struct {
	url    string
	sign   webhook.Signer
	client webhook.Client
}

// payload is the body of a request to the operator's service.
type payload struct {
	Type      string    `json:"type"` // "notice.payment_deadline"
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	UserID     string    `json:"userId"`
	ExternalID string    `json:"externalId,omitempty"`
	Account    string    `json:"account"` // e-mail address, or phone number in E.164
	Verified   bool      `json:"verified"`
	Language   string    `json:"language"`
	Title      string    `json:"title"`
	Text       string    `json:"text"`
	URL        string    `json:"url"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

// describe adds what is known of the user. A link may be sent to another number than that
// of the account.
func (d *data) describe(u *ent.User) {
	d.Verified = u.VerifiedAt != nil && u.Account == d.Account
	if u.ExternalID != nil {
		d.ExternalID = *u.ExternalID
	}
}

// summary is a notice in a few words.
type summary struct{ language, title, text string }

func (s *Service) summarise(n notice, to *ent.User) (summary, error) {
	language := locale.Language(to.Language)
	if language != locale.Chinese {
		language = locale.English
	}
	title, text, err := mail.Summary(texts[n.kind], language, n.content, s.now())
	return summary{string(language), title, text}, err
}

// deliver writes the delivery of a notice to the operator's service.
func (s *Service) deliver(ctx context.Context, tx *ent.Tx, n notice, to *ent.User) error {
	sum, err := s.summarise(n, to)
	if err != nil {
		return err
	}
	p := payload{Type: "notice." + strings.ToLower(string(n.kind)), Timestamp: s.now(), Data: data{
		UserID: n.user.Public(), Account: to.Account, Language: sum.language,
		Title: sum.title, Text: sum.text, URL: mail.Link(s.cfg.Shop, n.content.Path), ExpiresAt: n.until.UTC(),
	}}
	p.Data.describe(to)
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode notice %s: %w", n.kind, err)
	}
	s.metrics.written.WithLabelValues(string(n.kind), string(Hook)).Inc()
	return s.enqueue(tx, n, body).Exec(ctx)
}

// deliverToBrowsers writes the deliveries of a notice to the browsers of a user.
func (s *Service) deliverToBrowsers(ctx context.Context, tx *ent.Tx, n notice, to recipient) error {
	sum, err := s.summarise(n, to.row)
	if err != nil {
		return err
	}
	body, err := encodePush(n, sum)
	if err != nil {
		return err
	}
	s.metrics.written.WithLabelValues(string(n.kind), string(Push)).Inc()
	rows := collect.Map(to.subscriptions, func(browser id.Device) *ent.NoticeDeliveryCreate {
		return s.enqueue(tx, n, body).SetSubscriptionID(browser)
	})
	return tx.NoticeDelivery.CreateBulk(rows...).Exec(ctx)
}

func (s *Service) enqueue(tx *ent.Tx, n notice, body []byte) *ent.NoticeDeliveryCreate {
	return tx.NoticeDelivery.Create().SetID(id.New[id.Delivery]()).SetUserID(n.user).SetKind(noticedelivery.Kind(n.kind)).
		SetSubjectID(n.subject).
		SetPayload(body).SetDueAt(s.now()).SetRetryUntil(n.until).SetCreatedAt(s.now())
}

// Send sends the deliveries that are due, at most one batch. It is a periodic.Step.
func (s *Service) Send(ctx context.Context) (map[string]int, error) {
	tried, err := queue.Work(ctx, s.queue, func(ctx context.Context, ids ...id.Delivery) ([]*ent.NoticeDelivery, error) {
		return s.cfg.DB.Ent.NoticeDelivery.Query().Where(noticedelivery.IDIn(ids...)).All(ctx)
	}, s.attempt)
	return map[string]int{"tried": tried}, err
}

// attempt sends a delivery once and records the outcome.
func (s *Service) attempt(ctx context.Context, d *ent.NoticeDelivery) error {
	attempt := queue.Attempt{ID: d.ID.UUID(), Number: d.Attempts, RetryUntil: d.RetryUntil}
	outcome, err := s.queue.Try(ctx, &attempt, func(ctx context.Context) error {
		if err := s.stillHolds(ctx, d); err != nil {
			return err
		}
		return s.sendOne(ctx, d)
	})
	if outcome != "" {
		s.metrics.of(d).WithLabelValues(outcome).Inc()
	}
	return err
}

func (s *Service) sendOne(ctx context.Context, d *ent.NoticeDelivery) error {
	switch {
	case d.SubscriptionID != nil:
		return s.pushTo(ctx, d)
	case s.hook != nil:
		return s.hook.send(ctx, d, s.now())
	}
	return queue.ErrOver // the operator removed the service
}

// stillHolds returns queue.ErrOver if the subject of a delivery has ended.
func (s *Service) stillHolds(ctx context.Context, d *ent.NoticeDelivery) error {
	if !s.now().Before(d.RetryUntil) {
		return queue.ErrOver
	}
	if Kind(d.Kind) == Admitted && d.Attempts > 1 && d.Error == "" {
		return queue.ErrOver // a process ended during an attempt, and it may have arrived
	}
	holds, err := Subjects{s.cfg.DB}.Holds(ctx, texts[Kind(d.Kind)], d.SubjectID)
	if err == nil && !holds {
		err = queue.ErrOver
	}
	return err
}

// send sends a delivery. The id of the message is that of the delivery, at each attempt.
func (h *hook) send(ctx context.Context, d *ent.NoticeDelivery, now time.Time) error {
	return h.post(ctx, d.ID, d.Payload, now)
}

func (h *hook) post(ctx context.Context, message id.Delivery, body []byte, now time.Time) error {
	header, err := h.sign.Header(message.Public(), now, body)
	if err != nil {
		return err
	}
	_, err = h.client.Post(ctx, h.url, header, body)
	return err
}

// Texts returns what sends the links of accounts to phone numbers; nil without the
// operator's service.
func (s *Service) Texts() mail.Texts {
	if s.hook == nil {
		return nil
	}
	return texter{s}
}

// texter sends messages through the operator's service.
type texter struct{ service *Service }

// SendText implements mail.Texts.
func (t texter) SendText(ctx context.Context, m mail.Text) error {
	p := payload{Type: "account." + string(m.Kind), Timestamp: m.CreatedAt, Data: data{
		UserID: m.User.Public(), Account: m.To, Language: string(m.Language), Title: m.Title, Text: m.Body, URL: m.URL,
		ExpiresAt: m.ExpiresAt,
	}}
	switch row, err := t.service.cfg.DB.Ent.User.Get(ctx, m.User); {
	case ent.IsNotFound(err): // deleted meanwhile
	case err != nil:
		return fmt.Errorf("read receiver of message %s: %w", m.Kind, err)
	default:
		p.Data.describe(row)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode message %s: %w", m.Kind, err)
	}
	return t.service.hook.post(ctx, id.Delivery(m.ID), body, t.service.now())
}
