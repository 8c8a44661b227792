package system_test

import (
	"testing"

	"github.com/coder/websocket"

	"seckill/internal/ops/seed"
)

// ended reads a socket until the server closes it and returns the close code.
func (k *socket) ended() websocket.StatusCode {
	for {
		var f frame
		if err := k.next(&f); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

type listedUser struct {
	ID, Account, Role string
	Disabled          bool
}

// users runs the list of users as an administrator.
func (s *site) users(token, arguments string) (found []listedUser, next string) {
	s.t.Helper()
	var data struct {
		Users struct {
			Edges    []struct{ Node listedUser }
			PageInfo struct {
				HasNextPage bool
				EndCursor   string
			}
		}
	}
	s.ask(token, `{ users(`+arguments+`) { edges { node { id account role disabled } } pageInfo { hasNextPage endCursor } } }`, nil).into(s.t, &data)
	for _, e := range data.Users.Edges {
		found = append(found, e.Node)
	}
	if data.Users.PageInfo.HasNextPage {
		next = data.Users.PageInfo.EndCursor
	}
	return found, next
}

func TestAdministratorsChangeUsersAndEndTheirSessions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	admin := s.staff("admin@example.com", "ADMIN")
	payload := subscription(t, `subscription($id: ID!) { saleStatus(saleId: $id) { kind } }`, made.SaleID)
	s.staff("clerk@example.com", "CUSTOMER")
	clerk, _ := s.users(admin, `first: 20, search: "clerk@"`)
	if len(clerk) != 1 || clerk[0].Account != "clerk@example.com" {
		t.Fatalf("found %+v", clerk)
	}
	user := clerk[0].ID
	for _, c := range []struct {
		field, selection string
		input            map[string]any
	}{
		{"setUserRole", "user { id role }", map[string]any{"userId": user, "role": "OPERATOR"}},
		{"endUserSessions", "endedSessions", map[string]any{"userId": user}},
		{"disableUser", "user { id disabled }", map[string]any{"userId": user, "note": "left the company"}},
	} {
		token := s.login("clerk@example.com", "a long password")
		k := s.dial(token)
		k.send(frame{ID: "s", Type: "subscribe", Payload: payload})
		if f := k.read(); f.Type != "next" {
			t.Fatalf("first frame %+v", f)
		}
		if p := s.mutate(admin, c.field, c.selection, c.input); p.why() != "" {
			t.Fatalf("%s: %s", c.field, p.why())
		}
		if code := k.ended(); code != 4403 {
			t.Errorf("%s: the socket ended with %v, want 4403", c.field, code)
		}
		if got := s.ask(token, `{ myOrders { totalCount } }`, nil).code(); got != "UNAUTHENTICATED" {
			t.Errorf("%s: the token afterwards: %q", c.field, got)
		}
	}
	if found, _ := s.users(admin, `disabled: true, role: OPERATOR`); len(found) != 1 || found[0].ID != user || !found[0].Disabled {
		t.Errorf("disabled operators: %+v", found)
	}
	if p := s.mutate(admin, "enableUser", "user { id }", map[string]any{"userId": user}); p.why() != "" {
		t.Error(p.why())
	}
	s.login("clerk@example.com", "a long password")
	first, next := s.users(admin, `first: 2`)
	if second, last := s.users(admin, `first: 2, after: "`+next+`"`); len(first) != 2 || len(second) != 1 || last != "" {
		t.Errorf("pages %+v and %+v, then %q", first, second, last)
	}
	own, _ := s.users(admin, `search: "admin@"`)
	out := s.ask(admin, `mutation { disableUser(input: {userId: "`+own[0].ID+`", note: "me"}) { userErrors { code } } }`, nil)
	if out.code() != "FORBIDDEN" {
		t.Errorf("an administrator disables the own account: %s %+v", out.Data, out.Errors)
	}
}

func TestAUserChangesTheOwnPassword(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	here := s.staff("buyer@example.com", "CUSTOMER")
	elsewhere := s.login("buyer@example.com", "a long password")
	change := func(current, next string) string {
		t.Helper()
		return s.mutate(here, "changePassword", "endedSessions", map[string]any{"currentPassword": current, "newPassword": next}).why()
	}
	if why := change("not the password", "violin tower 46 mist"); why != "INVALID_CREDENTIALS" {
		t.Errorf("with a wrong password: %q", why)
	}
	if why := change("a long password", "password1234"); why != "INVALID_INPUT" {
		t.Errorf("to a common password: %q", why)
	}
	if why := change("a long password", "violin tower 46 mist"); why != "" {
		t.Fatal(why)
	}
	for token, want := range map[string]string{here: "", elsewhere: "UNAUTHENTICATED"} {
		if got := s.ask(token, `{ myOrders { totalCount } }`, nil).code(); got != want {
			t.Errorf("a session afterwards: %q, want %q", got, want)
		}
	}
	s.login("buyer@example.com", "violin tower 46 mist")
}
