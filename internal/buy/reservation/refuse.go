package reservation

import (
	"time"

	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// windowSlack is the distance from opening and closing time within which the local
// clock does not decide; Redis TIME decides.
const windowSlack = 250 * time.Millisecond

// Refuse returns the refusal that Redis would certainly return: NotStarted, Ended or
// SoldOut, for a buyer of a share ("" = of none). It returns false for every other state, and near
// the opening and closing time, and the time of a share.
func (c *StockCache) Refuse(item id.Item, share person.Key) (Outcome, bool) {
	c.touch(c.clock.Now())
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.refuse(item, share)
}

// refuse is Refuse; the caller holds mu.
func (c *StockCache) refuse(item id.Item, share person.Key) (Outcome, bool) {
	v, ok := c.views[item]
	local := c.clock.Now()
	if !ok || !c.shared.Known() || local.Sub(v.ReadAt) > viewTTL {
		return Outcome{}, false
	}
	now := c.shared.Now()
	o := Outcome{Remaining: v.Stock, Revision: v.Revision, Epoch: v.Epoch, Opens: v.Opens, At: now}
	switch {
	case now.Add(windowSlack).Before(v.Opens):
		o.Code = NotStarted
	case now.After(v.Closes.Add(windowSlack)):
		o.Code = Ended
	case v.State == GateOpen && v.ForShare(share, now) == 0 &&
		(v.Kept == "" || v.ForShare(share, now.Add(windowSlack)) == 0):
		o.Code = SoldOut
	default:
		return Outcome{}, false
	}
	return o, true
}

// RefuseAttempt is Refuse, except for an idempotency key that may have been accepted, and
// for a user who may have a reservation: the outcome is in Redis.
func (c *StockCache) RefuseAttempt(item id.Item, user id.User, share person.Key, key string) (Outcome, bool) {
	o, refused := c.Refuse(item, share)
	if refused && o.Code != NotStarted && c.mayBeAccepted(item, o, user.String(), key) {
		return Outcome{}, false
	}
	return o, refused
}

// RefuseUser is Refuse, except for a user who may have a reservation.
func (c *StockCache) RefuseUser(item id.Item, user id.User, share person.Key) (Outcome, bool) {
	return c.RefuseAttempt(item, user, share, "")
}

// MayHaveReservation returns false only if it is known that a user has no reservation of an
// item whose gate is closed or sold out.
func (c *StockCache) MayHaveReservation(item id.Item, user id.User) bool {
	v, ok := c.View(item)
	return !ok || c.mayBeAccepted(item, Outcome{Epoch: v.Epoch, Revision: v.Revision}, user.String(), "")
}
