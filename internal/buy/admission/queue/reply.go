package queue

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/fault"
)

// seen returns the ticket with the state of a look.lua reply; nil = the ticket is gone.
func (t Ticket) seen(reply []any, tokens path.Tokens) (*Ticket, error) {
	if len(reply) != 10 {
		return nil, fmt.Errorf("look replied %d values", len(reply))
	}
	status, _ := reply[0].(string)
	epoch, err0 := number(reply[5])
	ahead, ok1 := reply[2].(int64)
	wait, ok2 := reply[3].(int64)
	chance, ok3 := reply[4].(int64)
	now, err1 := millis(reply[1])
	expires, err2 := millis(reply[6])
	if err := errors.Join(err0, err1, err2); err != nil || !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("look replied %v: %w", reply, err)
	}
	if status == "" {
		return nil, nil
	}
	why, _ := reply[7].(string)
	t.Nonce, _ = reply[8].(string)
	t.Status, t.Ended, t.At, t.Position, t.Path = Status(status), endings[why], now, nil, nil
	if t.Status == Waiting {
		t.Position = positionOf(ahead, wait, chance)
	}
	if epoch != 0 {
		text, _ := reply[9].(string)
		persons, err := person.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("look replied %v: %w", reply, err)
		}
		p := reservation.Permit{Epoch: epoch, Until: expires, Persons: persons}
		t.Path = &path.Path{Token: tokens.Token(t.User, t.Item, p), ExpiresAt: expires}
	}
	return &t, nil
}

// positionOf returns the position of a waiting ticket, as lua/outlook.lua replies it; each -1 =
// unknown.
func positionOf(ahead, wait, chance int64) *Position {
	if ahead < 0 {
		return nil
	}
	p := &Position{Ahead: int(ahead)}
	if wait >= 0 && chance != 0 { // without a chance there is nothing to wait for
		d := time.Duration(wait) * time.Second
		span := spanOf(d)
		p.Wait, p.Span = &d, &span
	}
	if chance >= 0 {
		percent := int(chance)
		p.Chance = &percent
	}
	return p
}

// endings maps the words of admit.lua.
var endings = map[string]fault.Reason{"holding": fault.AlreadyOrdered, "limit": fault.PurchaseLimitReached,
	"unused": fault.PathInvalid}

// millis parses Unix milliseconds that a script returned as text.
func millis(v any) (time.Time, error) {
	ms, err := number(v)
	return time.UnixMilli(ms).UTC(), err
}

func number(v any) (int64, error) {
	text, _ := v.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("number %v: %w", v, err)
	}
	return n, nil
}
