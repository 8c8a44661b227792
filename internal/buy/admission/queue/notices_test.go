package queue_test

import (
	"testing"
	"time"

	"seckill/internal/platform/id"
)

func TestEachAdmissionIsReportedOnceForItsNotice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		tickets := map[id.User]id.Ticket{} // by user
		for range 4 {
			user := id.New[id.User]()
			tickets[user] = f.enter(user).ID
		}
		f.set("stock", 3)
		if n := f.step()["admitted"]; n != 3 {
			t.Fatalf("admitted %d", n)
		}
		batch, lost := f.notices.Take(time.Now())
		if len(batch) != 3 || lost != 0 {
			t.Fatalf("reported %+v, %d lost", batch, lost)
		}
		for _, a := range batch {
			ticket := tickets[a.User]
			if a.Ticket != ticket || a.Item != f.item {
				t.Errorf("reported %+v", a)
			}
			admitted, err := f.queue.Own(t.Context(), ticket, a.User)
			f.must(err)
			if admitted.Path == nil || !admitted.Path.ExpiresAt.Equal(a.Until) {
				t.Errorf("reported until %s, the path is %+v", a.Until, admitted.Path)
			}
			delete(tickets, a.User)
		}
		f.step()
		if batch, _ = f.notices.Take(time.Now()); len(batch) != 0 || len(tickets) != 1 {
			t.Errorf("reported again %+v", batch)
		}
	})
}
