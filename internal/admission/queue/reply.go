package queue

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"seckill/internal/admission/path"
)

// seen returns the ticket with the state of a look.lua reply; nil = the ticket is gone.
func (t Ticket) seen(reply []any) (*Ticket, error) {
	if len(reply) != 7 {
		return nil, fmt.Errorf("look replied %d values", len(reply))
	}
	status, _ := reply[0].(string)
	token, _ := reply[5].(string)
	ahead, ok1 := reply[2].(int64)
	wait, ok2 := reply[3].(int64)
	chance, ok3 := reply[4].(int64)
	now, err1 := millis(reply[1])
	expires, err2 := millis(reply[6])
	if err := errors.Join(err1, err2); err != nil || !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("look replied %v: %w", reply, err)
	}
	if status == "" {
		return nil, nil
	}
	t.Status, t.At, t.Position, t.Path = Status(status), now, nil, nil
	if t.Status == Waiting && ahead >= 0 {
		t.Position = &Position{Ahead: int(ahead)}
		if wait >= 0 {
			d := time.Duration(wait) * time.Second
			t.Position.Wait = &d
		}
		if chance >= 0 {
			percent := int(chance)
			t.Position.Chance = &percent
		}
	}
	if token != "" {
		t.Path = &path.Path{Token: token, ExpiresAt: expires}
	}
	return &t, nil
}

// millis parses Unix milliseconds that a script returned as text.
func millis(v any) (time.Time, error) {
	text, _ := v.(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %v: %w", v, err)
	}
	return time.UnixMilli(ms).UTC(), nil
}
