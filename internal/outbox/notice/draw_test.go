package notice_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/waitlistentry"
	"seckill/internal/platform/id"
)

// drawn draws the item. The numbers of the user and of others, from 1, are those of the statuses.
func (e *env) drawn(own int, statuses ...waitlistentry.Status) {
	e.Helper()
	now := e.clock.Now()
	e.tx(func(ctx context.Context, tx *ent.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO item_draws (id, sale_id, state, entries, drawn_at, statement, round, source, value, value_source, told)
			VALUES ($1, $2, 'DRAWN', $3, $4, '', 0, '', '', '', 0)`, e.item, e.sale, len(statuses), now); err != nil {
			return err
		}
		for i, status := range statuses {
			user := e.user
			if i+1 != own {
				user = id.New[id.User]()
			}
			entry := id.New[id.Waitlist]()
			err := tx.WaitlistEntry.Create().SetID(entry).SetSaleID(e.sale).SetItemID(e.item).SetUserID(user).SetQuantity(1).
				SetStatus(status).SetNonce("nonce").SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `UPDATE waitlist_entries SET line = $1 WHERE id = $2`, i+1, entry); err != nil {
				return err
			}
		}
		return nil
	})
}

// told lets the loop of results run, and returns how many were told.
func (e *env) told() int {
	e.Helper()
	counts, err := e.notices.TellDraws(e.Context())
	e.must(err)
	return counts["told"]
}

func TestThoseWithoutAnOfferAreToldTheirNumberOnce(t *testing.T) {
	onBoth(t, func(e *env) {
		statuses := []waitlistentry.Status{waitlistentry.StatusOFFERED, waitlistentry.StatusLEFT}
		for range 500 { // more than one batch
			statuses = append(statuses, waitlistentry.StatusWAITING)
		}
		e.drawn(333, statuses...)
		e.clock.Advance(time.Minute - time.Second)
		if n := e.told(); n != 0 {
			e.Errorf("%d were told while offers are made", n)
		}
		e.clock.Advance(time.Second)
		if n := e.told(); n != 500 {
			e.Errorf("%d were told, want 500", n)
		}
		e.has(e.step(), "Kettle: you drew number 333")
		if body := e.last().Plain; !strings.Contains(body, "You stay in line") || !strings.Contains(body, "/s/spring?item=") {
			e.Errorf("mail %s", body)
		}
		if n := e.told(); n != 0 {
			e.Errorf("%d were told again", n)
		}
	})
}

func TestAResultThatWasOvertakenIsNotSent(t *testing.T) {
	onBoth(t, func(e *env) {
		e.drawn(1, waitlistentry.StatusWAITING)
		e.clock.Advance(time.Minute)
		if n := e.told(); n != 1 {
			e.Errorf("%d were told", n)
		}
		e.must(e.db.Ent.WaitlistEntry.Update().Where(waitlistentry.ItemID(e.item)).SetStatus(waitlistentry.StatusOFFERED).Exec(e.Context()))
		e.has(e.step(), "")
	})
}
