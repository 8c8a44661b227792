package queue_test

import (
	"errors"
	"testing"
	"time"

	"seckill/internal/platform/captcha"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// worked creates a proof of work of the user for the sale and solves it.
func (f *fixture) worked(user id.User) captcha.Answer {
	f.t.Helper()
	c, err := f.captchas.Create(f.t.Context(), captcha.CreateInput{
		Purpose: captcha.Seckill, Sale: f.sale, User: user, Kind: captcha.ProofOfWork,
	})
	if err != nil {
		f.t.Fatalf("create captcha: %v", err)
	}
	text, err := captcha.Solve(c.Parameters)
	if err != nil {
		f.t.Fatal(err)
	}
	return captcha.Answer{ChallengeID: c.ID, Text: text}
}

func TestWorkDoneBeforeTheOpeningGivesAPlaceInTheDrawOnly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("opens", time.Now().Add(time.Hour).UnixMilli())
		drawn, late := f.input(id.New[id.User]()), f.input(id.New[id.User]())
		drawn.Waived, late.Waived = false, false
		drawn.Captcha, late.Captcha = f.worked(drawn.User), f.worked(late.User)
		if ticket, err := f.queue.Enter(t.Context(), drawn); ticket == nil || err != nil {
			t.Errorf("before the opening: %+v, %v", ticket, err)
		}
		opens := time.Now().UnixMilli() + 1 // after the millisecond in which the work was requested
		f.set("opens", opens)
		testenv.Eventually(t, testenv.Wait, func() bool { return f.redis.Time(t.Context()).Val().UnixMilli() >= opens }, "the sale opens")
		_, err := f.queue.Enter(t.Context(), late)
		if r, ok := errors.AsType[captcha.Required](err); !ok || r.Challenge == nil {
			t.Errorf("after the opening, worked before it: %v; want a new challenge", err)
		}
		late.Captcha = f.worked(late.User)
		if ticket, err := f.queue.Enter(t.Context(), late); ticket == nil || err != nil {
			t.Errorf("worked after the opening: %+v, %v", ticket, err)
		}
	})
}
