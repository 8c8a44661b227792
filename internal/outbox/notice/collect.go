package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/ent"
	"seckill/ent/noticechoice"
	"seckill/ent/noticefact"
	"seckill/ent/user"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// collectEvery and idleCollect bound the pause between two looks for facts.
	collectEvery = 250 * time.Millisecond
	idleCollect  = time.Second
	// collectTimeout bounds one look.
	collectTimeout = 30 * time.Second
	// maxFacts bounds the facts of one look; each has up to 500 subjects.
	maxFacts = 100
	// factRetry is the pause after an error before a fact is tried again.
	factRetry = 10 * time.Second
)

// Loops returns the loops that write notices, and send those that are no e-mails; none
// without a channel.
func (s *Service) Loops() []periodic.Loop {
	loops := []periodic.Loop{
		{Name: "notices", Every: collectEvery, Idle: idleCollect, Timeout: collectTimeout, Step: s.Collect, Log: s.cfg.Log},
		{Name: "draw results", Every: time.Second, Idle: 5 * time.Second, Timeout: collectTimeout, Step: s.TellDraws, Log: s.cfg.Log},
		{Name: "notice deliveries", Every: sendEvery, Idle: idleSend, Timeout: lease, Step: s.Send,
			HasWork: s.cfg.DB.AnyRows(s.queue.DueRows), Log: s.cfg.Log},
	}
	switch {
	case s.hook != nil || s.push != nil:
		return loops
	case s.cfg.Mail != nil:
		return loops[:2]
	}
	return nil
}

// Collect writes the notices that are due. It is a periodic.Step. A fact that cannot be
// read does not delay the others.
func (s *Service) Collect(ctx context.Context) (map[string]int, error) {
	reminders, err := s.remind(ctx)
	counts := map[string]int{"reminders": reminders}
	failed := []error{err}
	for range maxFacts {
		found, err := s.collectOne(ctx)
		failed = append(failed, err)
		if !found || ctx.Err() != nil {
			break
		}
		counts["facts"]++
	}
	return counts, errors.Join(failed...)
}

// collectOne writes the notices of the fact that is due first. found is false if there is
// none.
func (s *Service) collectOne(ctx context.Context) (found bool, err error) {
	due := noticefact.DueAtLTE(s.now())
	if found, err := s.cfg.DB.Ent.NoticeFact.Query().Where(due).Exist(ctx); err != nil || !found {
		return false, err
	}
	var row *ent.NoticeFact
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.NoticeFact.Query().Where(due).Order(ent.Asc(noticefact.FieldDueAt)).Limit(1)
		postgres.SkipLocked(s.cfg.DB.Dialect, query)
		rows, err := query.All(ctx)
		if err != nil || len(rows) == 0 {
			row = nil
			return err
		}
		row = rows[0]
		if err := s.expand(ctx, tx, row); err != nil {
			return err
		}
		return tx.NoticeFact.DeleteOne(row).Exec(ctx)
	})
	if err != nil && row != nil {
		later := s.cfg.DB.Ent.NoticeFact.Update().Where(noticefact.ID(row.ID)).SetDueAt(s.now().Add(factRetry)).Exec(ctx)
		return true, errors.Join(fmt.Errorf("notices of fact %s %s: %w", row.Kind, row.ID, err), later)
	}
	return row != nil, err
}

func (s *Service) expand(ctx context.Context, tx *ent.Tx, row *ent.NoticeFact) error {
	if !s.now().Before(row.Until) {
		return nil
	}
	var subjects []subject
	if err := json.Unmarshal(row.Subjects, &subjects); err != nil {
		return fmt.Errorf("read subjects: %w", err)
	}
	notices, err := describe(ctx, tx, s.cfg.Page, Kind(row.Kind), subjects)
	if err != nil {
		return err
	}
	notices = slices.DeleteFunc(notices, func(n notice) bool { // the later deadline has a fact of its own
		return n.kind == PaymentDeadline && n.until.After(row.Until)
	})
	for i := range notices {
		if notices[i].until.IsZero() {
			notices[i].until = row.Until
		}
	}
	return s.dispatch(ctx, tx, notices)
}

// recipient is a user with the choices and browsers.
type recipient struct {
	row           *ent.User
	choices       []*ent.NoticeChoice
	subscriptions []id.Device
}

// dispatch writes the e-mails and deliveries of notices to those who want them.
func (s *Service) dispatch(ctx context.Context, tx *ent.Tx, notices []notice) error {
	recipients, err := s.readRecipients(ctx, tx, notices)
	if err != nil {
		return err
	}
	for _, n := range notices {
		to, known := recipients[n.user]
		if !known {
			continue
		}
		choice := choiceOf(to.choices, n.user, n.kind)
		reaching := s.reaching(to.row, len(to.subscriptions))
		if choice.Mail && slices.Contains(reaching, Mail) && n.kind != Refund { // its e-mail is a receipt
			if err := s.mail(ctx, tx, n, to.row); err != nil {
				return err
			}
		}
		if choice.Hook && slices.Contains(reaching, Hook) {
			if err := s.deliver(ctx, tx, n, to.row); err != nil {
				return err
			}
		}
		if choice.Push && slices.Contains(reaching, Push) {
			if err := s.deliverToBrowsers(ctx, tx, n, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) readRecipients(ctx context.Context, tx *ent.Tx, notices []notice) (map[id.User]recipient, error) {
	ids := collect.Map(notices, func(n notice) id.User { return n.user })
	users, err := tx.User.Query().Where(user.IDIn(ids...), user.DisabledAtIsNil()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read users of notices: %w", err)
	}
	choices, err := tx.NoticeChoice.Query().Where(noticechoice.UserIDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read choices of notices: %w", err)
	}
	subscriptions, err := s.subscriptionsOf(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	chosen := map[id.User][]*ent.NoticeChoice{}
	for _, c := range choices {
		chosen[c.UserID] = append(chosen[c.UserID], c)
	}
	recipients := make(map[id.User]recipient, len(users))
	for _, row := range users {
		recipients[row.ID] = recipient{row, chosen[row.ID], subscriptions[row.ID]}
	}
	return recipients, nil
}
