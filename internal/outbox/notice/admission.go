package notice

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/noticechoice"
	"seckill/ent/pushsubscription"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
)

const (
	// maxAdmissions bounds the admissions in memory; each has about 100 bytes.
	maxAdmissions = 20_000
	// admissionBatch bounds the users that one look asks Postgres about.
	admissionBatch = 1000
	// admissionTimeout bounds one look.
	admissionTimeout = 5 * time.Second
)

// Admission is a buyer whom the waiting room of an item let in.
type Admission struct {
	Ticket id.Ticket
	Item   id.Item
	User   id.User
	Until  time.Time // when the path token expires
}

// Admissions keeps admissions in memory until their notices are written, so that admitting
// does not wait for Postgres. A nil *Admissions keeps nothing. It is safe for concurrent use.
type Admissions struct {
	mu      sync.Mutex
	waiting []Admission // guarded by mu
	lost    int         // guarded by mu; since the last Take
}

// Add keeps admissions, as far as there is room. It does not wait.
func (a *Admissions) Add(admissions ...Admission) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	fit := min(len(admissions), maxAdmissions-len(a.waiting))
	a.waiting = append(a.waiting, admissions[:fit]...)
	a.lost += len(admissions) - fit
}

// Take removes the oldest admissions that are valid at a time, at most one batch, and
// returns the number of those that found no room.
func (a *Admissions) Take(now time.Time) (batch []Admission, lost int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := 0
	for taken < len(a.waiting) && len(batch) < admissionBatch {
		if next := a.waiting[taken]; next.Until.After(now) {
			batch = append(batch, next)
		}
		taken++
	}
	a.waiting = append(a.waiting[:0:0], a.waiting[taken:]...)
	lost, a.lost = a.lost, 0
	return batch, lost
}

// RunAdmissions writes the notices of admissions until ctx ends, and then those of one
// more batch.
func (s *Service) RunAdmissions(ctx context.Context) error {
	loop := periodic.Loop{
		Name: "notices of admissions", Every: collectEvery, Idle: idleCollect, Step: s.CollectAdmissions, Log: s.cfg.Log,
	}
	if err := loop.Run(ctx); err != nil {
		return err
	}
	if _, err := s.CollectAdmissions(ctx); err != nil {
		s.cfg.Log.WarnContext(ctx, "the last notices of admissions are lost", slog.Any("error", err))
	}
	return nil
}

// CollectAdmissions writes the notices of one batch of admissions, also when ctx has ended.
// It is a periodic.Step. What it cannot write is lost: an outcome that is not known must not
// be repeated.
func (s *Service) CollectAdmissions(ctx context.Context) (map[string]int, error) {
	if s.cfg.Admissions == nil || s.push == nil {
		return nil, nil
	}
	batch, lost := s.cfg.Admissions.Take(s.now())
	s.metrics.lost.Add(float64(lost))
	if len(batch) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), admissionTimeout)
	defer cancel()
	n, err := s.writeAdmissions(ctx, batch)
	if err != nil {
		s.metrics.lost.Add(float64(len(batch)))
		return nil, fmt.Errorf("notices of %d admissions: %w", len(batch), err)
	}
	return map[string]int{"admissions": n}, nil
}

// writeAdmissions writes the notices of admissions, and returns how many were wanted.
func (s *Service) writeAdmissions(ctx context.Context, batch []Admission) (int, error) {
	wanting, err := s.wantAdmissions(ctx, batch)
	if err != nil || len(wanting) == 0 {
		return 0, err
	}
	var wanted []Admission
	items := map[id.Item]bool{}
	for _, a := range batch {
		if wanting[a.User] {
			wanted = append(wanted, a)
			items[a.Item] = true
		}
	}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		ids := make([]id.Item, 0, len(items))
		for item := range items {
			ids = append(ids, item)
		}
		products, err := productsOf(ctx, tx, ids)
		if err != nil {
			return err
		}
		notices := make([]notice, len(wanted))
		for i, a := range wanted {
			p := products[a.Item]
			notices[i] = notice{user: a.User, subject: a.Ticket.UUID(), kind: Admitted, until: a.Until, content: mail.Content{
				Path: p.path(a.Item), Notice: mail.NoticeContent{Name: p.name, At: a.Until},
			}}
		}
		return s.dispatch(ctx, tx, notices)
	})
	return len(wanted), err
}

// wantAdmissions returns the users of a batch with a browser who chose these notices: few of
// a crowd, found by one query.
func (s *Service) wantAdmissions(ctx context.Context, batch []Admission) (map[id.User]bool, error) {
	users := collect.Map(batch, func(a Admission) id.User { return a.User })
	var found []id.User
	err := s.cfg.DB.Ent.PushSubscription.Query().Where(pushsubscription.UserIDIn(users...), s.active(), choseAdmissions).
		Unique(true).Select(pushsubscription.FieldUserID).Scan(ctx, &found)
	if err != nil {
		return nil, fmt.Errorf("read users for notices: %w", err)
	}
	return collect.Set(found), nil
}

// choseAdmissions matches subscriptions of users who chose notices of admissions.
func choseAdmissions(q *sql.Selector) {
	c := sql.Table(noticechoice.Table).As("choice")
	q.Where(sql.Exists(sql.Dialect(q.Dialect()).Select(c.C(noticechoice.FieldID)).From(c).Where(sql.And(
		sql.ColumnsEQ(c.C(noticechoice.FieldUserID), q.C(pushsubscription.FieldUserID)),
		sql.EQ(c.C(noticechoice.FieldKind), string(Admitted)), sql.IsTrue(c.C(noticechoice.FieldPush)),
	))))
}
