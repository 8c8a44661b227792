package audit_test

import (
	"context"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

// place writes a waitlist entry for a user.
func (w *world) place(user id.User, status waitlistentry.Status, returnDue bool) id.Waitlist {
	w.Helper()
	place, now := id.New[id.Waitlist](), time.Now()
	w.update(func(ctx context.Context, tx *ent.Tx) error {
		return tx.WaitlistEntry.Create().SetID(place).SetSaleID(w.sale).SetItemID(w.item).SetUserID(user).SetQuantity(1).
			SetStatus(status).SetReturnDue(returnDue).SetOfferExpiresAt(now.Add(time.Minute)).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
	})
	return place
}

// hold reserves a unit in the gate under an id.
func (w *world) hold(user id.User, name id.Task) {
	w.Helper()
	r, err := reservation.NewGate(reservation.GateConfig{Client: w.redis.Script, Keys: w.keys}).Reacquire(w.Context(), reservation.Reacquire{
		Ref: reservation.Ref{Sale: w.sale, Item: w.item, User: user, Task: name}, Quantity: 1,
	})
	w.must(err)
	if r.Code != reservation.Reacquired {
		w.Fatalf("reacquire %+v", r)
	}
}

func TestOffersOfTheWaitlistAreReservations(t *testing.T) {
	t.Parallel()
	w := setup(t, testdb.Postgres(t))
	w.buy(3)
	w.work(3)
	users := w.users[20:]
	w.hold(users[0], id.Task(w.place(users[0], waitlistentry.StatusOFFERED, false)))
	w.hold(users[1], id.Task(w.place(users[1], waitlistentry.StatusWAITING, false))) // the row follows
	w.hold(users[2], id.Task(w.place(users[2], waitlistentry.StatusEXPIRED, true)))  // being released
	redeemed := w.users[3]
	w.place(redeemed, waitlistentry.StatusOFFERED, false) // has just become an attempt
	w.buy(1)
	report := w.audit()
	if !report.OK || report.Postgres.Offers != 2 || report.Redis.Reserved != 7 || report.Drift != 0 || len(report.Lost) != 0 {
		t.Errorf("report %+v", report)
	}
	w.must(w.Load(t.Context(), w.sale)) // the gate is rebuilt, with the offers in it
	report = w.audit()
	if !report.OK || report.Redis.Reserved != 5 || report.Redis.Stock != 15 {
		t.Errorf("rebuilt: %+v", report)
	}
}

func TestOffersThatDoNotAddUpAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(w *world, user id.User)
		want  string
	}{
		"without units": {func(w *world, user id.User) {
			w.place(user, waitlistentry.StatusOFFERED, false)
		}, "1 offers of the waitlist have no units in Redis"},
		"ended, not given back": {func(w *world, user id.User) {
			w.hold(user, id.Task(w.place(user, waitlistentry.StatusLEFT, false)))
		}, "1 reservations in Redis belong to tasks that have ended"},
		"held for another user": {func(w *world, user id.User) {
			place := w.place(user, waitlistentry.StatusOFFERED, false)
			w.hold(user, id.New[id.Task]())
			w.hold(w.users[25], id.Task(place))
		}, "1 reservations in Redis differ from their orders in user or quantity"},
		"of an entry that Postgres lost": {func(w *world, user id.User) {
			w.hold(user, id.New[id.Task]())
		}, "1 reservations in Redis have neither an order nor a message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, testdb.Postgres(t))
			w.buy(2)
			w.work(2)
			w.move(0, order.Paid, nil, false)
			test.spoil(w, w.users[20])
			w.finds(test.want)
			if lost := w.audit().Lost; len(lost) > 0 {
				w.Errorf("messages are sent again for %+v, which are not of tasks", lost)
			}
		})
	}
}
