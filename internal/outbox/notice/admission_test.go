package notice_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/noticedelivery"
	"seckill/ent/user"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
)

const turn = time.Minute

// admit admits a user from the waiting room, and returns the ticket.
func (e *env) admit(userID id.User) id.Ticket {
	ticket := id.New[id.Ticket]()
	e.admissions.Add(notice.Admission{Ticket: ticket, Item: e.item, User: userID, Until: e.clock.Now().Add(turn)})
	return ticket
}

// write lets the loop of admissions run once, and returns how many notices it wrote.
func (e *env) write() int {
	e.Helper()
	counts, err := e.notices.CollectAdmissions(e.Context())
	e.must(err)
	return counts["admissions"]
}

// delivery returns the newest delivery.
func (e *env) delivery() (state noticedelivery.State, reason string) {
	e.Helper()
	rows, err := e.db.Ent.NoticeDelivery.Query().All(e.Context())
	e.must(err)
	newest := slices.MaxFunc(rows, func(a, b *ent.NoticeDelivery) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return newest.State, newest.Error
}

func TestAnAdmittedBuyerIsNotifiedInTheBrowserOnce(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		e.admit(e.user)
		if n := e.write(); n != 0 {
			e.Errorf("%d notices without a browser", n)
		}
		e.subscribe(e.session(), s.browser())
		ticket := e.admit(e.user)
		e.admit(id.New[id.User]()) // another buyer, without a browser
		if n := e.write() + e.write(); n != 1 {
			e.Errorf("%d notices, want 1", n)
		}
		e.has(e.step(), "") // by no e-mail
		e.clock.Advance(2 * time.Second)
		e.send()
		e.send()
		if len(s.messages) != 1 {
			e.Fatalf("messages %+v", s.messages)
		}
		m := s.messages[0]
		if m.Title != "Your turn: Kettle" || !strings.HasPrefix(m.Body, "You have 1 minute to buy Kettle.") || m.Path != "/s/spring?item="+e.item.Public() ||
			m.Tag != encode(ticket[:]) || m.header.Get("Ttl") != "58" || m.header.Get("Urgency") != "high" {
			e.Errorf("message %+v", m)
		}

		e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).SetLanguage("zh").Exec(e.Context()))
		e.admit(e.user)
		e.write()
		e.send()
		if m := s.messages[len(s.messages)-1]; len(s.messages) != 2 || m.Title != "轮到您了：Kettle" || !strings.Contains(m.Body, "1 分钟") {
			e.Errorf("message %+v", m)
		}
		e.choose(notice.Choice{Kind: notice.Admitted})
		e.admit(e.user)
		if n := e.write(); n != 0 {
			e.Errorf("%d notices that were turned off", n)
		}
	})
}

func TestANoticeOfAnAdmissionIsNotSentAfterItsEnd(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		e.subscribe(e.session(), s.browser())
		e.admit(e.user)
		e.clock.Advance(turn)
		if n := e.write(); n != 0 {
			e.Errorf("%d notices were written too late", n)
		}
		e.admit(e.user)
		e.write()
		e.clock.Advance(turn)
		e.send()
		if state, _ := e.delivery(); len(s.messages) != 0 || state != noticedelivery.StateGIVEN_UP {
			e.Errorf("%d messages, %s", len(s.messages), state)
		}
	})
}

func TestANoticeOfAnAdmissionIsSentAtMostOnce(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e, http.StatusServiceUnavailable, http.StatusCreated, 0)
		e.subscribe(e.session(), s.browser())
		e.admit(e.user)
		e.write()
		for range 3 { // refused once, then accepted
			e.send()
			e.clock.Advance(10 * time.Second)
		}
		if state, _ := e.delivery(); len(s.messages) != 2 || state != noticedelivery.StateSENT {
			e.Fatalf("%d messages, %s", len(s.messages), state)
		}

		e.admit(e.user)
		e.write()
		for range 3 { // the connection is lost: it may have arrived
			e.send()
			e.clock.Advance(10 * time.Second)
		}
		if state, reason := e.delivery(); len(s.messages) != 3 || state != noticedelivery.StateGIVEN_UP || reason == "" {
			e.Errorf("%d messages, %s %q", len(s.messages), state, reason)
		}

		e.admit(e.user)
		e.write()
		// As after a crash during the request.
		e.must(e.db.Ent.NoticeDelivery.Update().Where(noticedelivery.StateEQ(noticedelivery.StatePENDING)).AddAttempts(1).Exec(e.Context()))
		e.send()
		if state, _ := e.delivery(); len(s.messages) != 3 || state != noticedelivery.StateGIVEN_UP {
			e.Errorf("after a crash: %d messages, %s", len(s.messages), state)
		}
	})
}

func TestAProcessThatStopsWritesTheNoticesOfItsLastAdmissions(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		e.subscribe(e.session(), s.browser())
		e.admit(e.user)
		stopped, stop := context.WithCancel(e.Context())
		stop()
		e.must(e.notices.RunAdmissions(stopped))
		e.send()
		if len(s.messages) != 1 {
			e.Errorf("messages %+v", s.messages)
		}
	})
}

func TestAdmissionsAreNoticedInBrowsersOnly(t *testing.T) {
	onBoth(t, func(e *env) {
		pushing(e)
		for _, c := range []notice.Choice{{Kind: notice.Admitted, Mail: true}, {Kind: notice.Admitted, Hook: true, Push: true}} {
			err := e.notices.Choose(e.Context(), e.user, []notice.Choice{{Kind: notice.Refund}, c})
			refusal, refused := fault.AsRefusal(err)
			if !refused || refusal.Reason() != fault.InvalidInput || !slices.Equal(refusal.Path(), []string{"choices", "1", "channels"}) {
				e.Errorf("%+v: %v", c, err)
			}
		}
		if got := e.notices.ChannelsOf(notice.Admitted); !slices.Equal(got, []notice.Channel{notice.Push}) {
			e.Errorf("channels %v", got)
		}
		if got := e.notices.ChannelsOf(notice.Refund); !slices.Equal(got, []notice.Channel{notice.Mail, notice.Push}) {
			e.Errorf("channels of other kinds %v", got)
		}
		if set := e.settings(); !set.Choices[3].Mail {
			e.Errorf("a refused call changed %+v", set.Choices)
		}
	})
}

func TestACrowdOfAdmissionsIsBoundedAndReadInBatches(t *testing.T) {
	t.Parallel()
	e := setup(t, testdb.Postgres(t))
	s := pushing(e)
	e.subscribe(e.session(), s.browser())
	const crowd = 20_001
	for i := range crowd {
		userID := id.New[id.User]()
		if i == 1500 {
			userID = e.user
		}
		e.admit(userID)
	}
	if first, second := e.write(), e.write(); first != 0 || second != 1 {
		t.Errorf("%d and %d notices, want one in the second batch", first, second)
	}
	const rest = crowd - 1 - 2000 // one had no room
	for left := rest; left > 0; left -= 1000 {
		batch, lost := e.admissions.Take(e.clock.Now())
		if want := min(left, 1000); len(batch) != want || lost != 0 {
			t.Fatalf("%d admissions and %d lost, want %d", len(batch), lost, want)
		}
	}
}

func TestAReminderAndAnOfferReachABrowserWithoutATab(t *testing.T) {
	onBoth(t, func(e *env) {
		s := pushing(e)
		e.must(e.db.Ent.User.Update().Where(user.ID(e.user)).ClearVerifiedAt().Exec(e.Context()))
		e.subscribe(e.session(), s.browser())
		at := notice.Opening{Sale: e.sale, At: e.opens}
		e.must(e.notices.Remind(e.Context(), e.user, at))
		promised, err := e.notices.Reminder(e.Context(), e.user, at)
		e.must(err)
		if !promised.Set || !slices.Equal(promised.Channels, []notice.Channel{notice.Push}) {
			e.Errorf("promised %+v", promised)
		}
		e.clock.Advance(promised.At.Sub(e.clock.Now()) - time.Second)
		e.step()
		e.send()
		if len(s.messages) != 0 {
			e.Errorf("too early: %+v", s.messages)
		}
		e.clock.Advance(time.Second)
		e.step()
		e.step()
		e.send()
		if len(s.messages) != 1 {
			e.Fatalf("messages %+v", s.messages)
		}
		if m := s.messages[0]; m.Title != "Spring sale opens in 10 minutes" || m.Path != "/s/spring" || m.header.Get("Ttl") != "600" || m.header.Get("Urgency") != "high" {
			e.Errorf("reminder %+v", m)
		}
		e.offer()
		e.step()
		e.send()
		if m := s.messages[len(s.messages)-1]; len(s.messages) != 2 || m.Title != "Kettle is available for you" || m.Path != "/s/spring?item="+e.item.Public() {
			e.Errorf("offer %+v", m)
		}
	})
}
