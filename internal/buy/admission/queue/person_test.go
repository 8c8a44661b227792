package queue_test

import (
	"errors"
	"strings"
	"testing"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// The accounts of one person share one ticket and one unused path token where the limits leave one
// unit, and the token of an admitted buyer has the person keys.
func TestAccountsOfOnePersonShareATicketAndAPathToken(t *testing.T) {
	t.Parallel()
	hasher := person.NewHasher([][]byte{[]byte(strings.Repeat("k", 32))})
	onBoth(t, func(t *testing.T, f *fixture) {
		f.must(f.redis.HSet(t.Context(), f.keys.Units(f.shard, f.sale), "epoch", 7).Err())
		f.set("limit", 1)
		enter := func(user id.User, keys person.Keys) (*queue.Ticket, error) {
			in := f.input(user)
			in.Persons = keys
			return f.queue.Enter(t.Context(), in)
		}
		issue := func(keys person.Keys) (path.Path, error) {
			return f.paths.Issue(t.Context(), path.IssueInput{Sale: f.sale, Item: f.item, User: id.New[id.User](), Persons: keys, Waived: true})
		}
		refused := func(err error, by person.Kind, when string) {
			t.Helper()
			if limit, ok := errors.AsType[reservation.LimitReached](err); !ok || limit.By != by {
				t.Errorf("%s: %v, want the limit of the %s", when, err, by)
			}
		}
		home := person.Keys{Contact: hasher.Contact(f.sale, "a@example.com", true), Address: hasher.Address(f.sale, person.Place{Street: "x"})}
		neighbour := person.Keys{Contact: hasher.Contact(f.sale, "b@example.com", true), Address: home.Address}
		user := id.New[id.User]()
		ticket, err := enter(user, home)
		f.must(err)
		if again, err := enter(user, home); err != nil || again.ID != ticket.ID {
			t.Errorf("the same account again: %+v %v", again, err)
		}
		_, err = enter(id.New[id.User](), person.Keys{Contact: home.Contact})
		refused(err, person.Contact, "a second ticket of a contact")
		_, err = enter(id.New[id.User](), neighbour)
		refused(err, person.Address, "a second ticket of an address")
		f.step()
		admitted := f.ticket(ticket)
		if admitted.Path == nil || tokens.Permit(user, f.item, admitted.Path.Token).Persons != home {
			t.Errorf("ticket %+v, want a path token with the person keys", admitted)
		}
		_, err = issue(person.Keys{Contact: home.Contact})
		refused(err, person.Contact, "a path token beside an unused one")
		if _, err := f.queue.Leave(t.Context(), ticket.ID, user); err != nil {
			t.Fatal(err)
		}
		if _, err = issue(neighbour); err != nil {
			t.Errorf("after the ticket was left: %v", err)
		}
		_, err = issue(home)
		refused(err, person.Address, "after the path token of a neighbour")
	})
}
