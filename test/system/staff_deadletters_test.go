package system_test

import (
	"context"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// poison makes Postgres refuse the orders of the given buyers, as a faulty migration
// would, and returns a function that undoes it.
func (s *site) poison(buyers ...string) (cure func()) {
	s.t.Helper()
	db := s.database()
	run := func(statement string) {
		s.t.Helper()
		if _, err := db.SQL.ExecContext(context.Background(), statement); err != nil {
			s.t.Fatal(err)
		}
	}
	run(`CREATE TABLE poisoned (account text)`)
	for _, b := range buyers {
		run(`INSERT INTO poisoned VALUES ('` + b + `')`)
	}
	run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT 1 FROM users u JOIN poisoned p ON p.account = u.account WHERE u.id = NEW.user_id) THEN
			RAISE EXCEPTION 'poisoned';
		END IF;
		RETURN NEW; END $$`)
	run(`CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse()`)
	return func() { run(`DROP TRIGGER refuse ON orders`) }
}

type deadLetter struct {
	ID        string
	Reason    string
	OrderTask *struct{ ID, Status string }
	Fields    []struct{ Name, Value string }
}

func (s *site) deadLetters(token string) []deadLetter {
	s.t.Helper()
	var data struct {
		DeadLetters struct{ Nodes []deadLetter }
	}
	s.ask(token, `{ deadLetters { nodes { id reason orderTask { id status } } } }`, nil).into(s.t, &data)
	return data.DeadLetters.Nodes
}

// decide replays or drops a dead letter and returns the refusal code.
func (s *site) decide(token, field, letterID string) string {
	s.t.Helper()
	var data struct{ Done UserErrors }
	s.ask(token, `mutation($id: ID!) { done: `+field+`(input: { letterId: $id, note: "looked at" }) { userErrors { code } } }`,
		map[string]any{"id": letterID}).into(s.t, &data)
	return data.Done.why()
}

// A poison message becomes a dead letter and blocks no other message. An operator lists
// it, inspects it, replays it or drops it.
func TestAnOperatorReplaysAndDropsPoisonedMessages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	operator := s.staff("letters@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 3, Stock: 3, PathTTL: 10 * time.Minute})
	kept, dropped, well := made.Users[0], made.Users[1], made.Users[2]
	cure := s.poison(kept.Account, dropped.Account)
	tasks := map[string]string{}
	for _, u := range []seed.LoadUser{kept, dropped, well} {
		p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
		if err != nil || p.OrderTask == nil {
			t.Fatalf("placed %+v %v", p, err)
		}
		tasks[u.Account] = p.OrderTask.ID
	}
	var letters []deadLetter
	testenv.Eventually(t, testenv.Wait, func() bool {
		letters = s.deadLetters(operator)
		return len(letters) == 2
	}, "two messages are set aside")
	byTask := map[string]deadLetter{}
	for _, l := range letters {
		if l.OrderTask == nil || l.OrderTask.Status != "SUBMITTED" || l.Reason == "" {
			t.Fatalf("letter %+v", l)
		}
		byTask[l.OrderTask.ID] = l
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(well.AccessToken, tasks[well.Account]) == "SUCCEEDED" }, "others go on")
	s.inspect(operator, byTask[tasks[kept.Account]].ID)
	socket := s.dial(dropped.AccessToken)
	socket.follow("dropped", tasks[dropped.Account])
	cure()
	if why := s.decide(operator, "replayDeadLetter", byTask[tasks[kept.Account]].ID); why != "" {
		t.Errorf("replay: %s", why)
	}
	if why := s.decide(operator, "dropDeadLetter", byTask[tasks[dropped.Account]].ID); why != "" {
		t.Errorf("drop: %s", why)
	}
	if e := socket.end(); e.OrderTask.Status != "FAILED" || e.OrderTask.Failure == nil {
		t.Errorf("the buyer is pushed %+v", e)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(kept.AccessToken, tasks[kept.Account]) == "SUCCEEDED" }, "the replayed order is written")
	s.lettersAreGone(operator)
	u, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		report := s.look(u.Public())
		return report.OK && report.Postgres.Orders == 2 && report.Redis.Stock == 1 && report.Stream.Dead == 0
	}, "the unit of the dropped message is back")
}

// inspect reads one dead letter and checks that its message is unchanged.
func (s *site) inspect(operator, letterID string) {
	s.t.Helper()
	var data struct{ DeadLetter deadLetter }
	s.ask(operator, `query($id: ID!) { deadLetter(id: $id) { id reason fields { name value } } }`, map[string]any{"id": letterID}).into(s.t, &data)
	names := map[string]bool{}
	for _, f := range data.DeadLetter.Fields {
		names[f.Name] = f.Value != ""
	}
	if data.DeadLetter.ID != letterID || !names["payload"] {
		s.t.Errorf("inspected %+v", data.DeadLetter)
	}
}

// lettersAreGone checks that no dead letter remains and that the log names the operator
// who replayed or dropped each.
func (s *site) lettersAreGone(operator string) {
	s.t.Helper()
	if left := s.deadLetters(operator); len(left) != 0 {
		s.t.Errorf("letters %+v", left)
	}
	var data struct {
		DeadLetterActs struct {
			Nodes []struct {
				Kind, Note string
				Actor      *struct{ ID string }
				OrderTask  *struct{ Status string }
			}
		}
	}
	s.ask(operator, `{ deadLetterActs { nodes { kind note actor { id } orderTask { status } } } }`, nil).into(s.t, &data)
	if len(data.DeadLetterActs.Nodes) != 2 {
		s.t.Fatalf("log %+v", data.DeadLetterActs.Nodes)
	}
	s.actsArePaged(operator)
	for _, a := range data.DeadLetterActs.Nodes {
		if a.Actor == nil || a.Note != "looked at" || a.OrderTask == nil {
			s.t.Errorf("log %+v", a)
		}
	}
}

// actsArePaged reads the two decisions page by page, and by kind.
func (s *site) actsArePaged(operator string) {
	s.t.Helper()
	type page struct {
		TotalCount int
		PageInfo   struct {
			HasNextPage bool
			EndCursor   string
		}
		Edges []struct {
			Node struct{ LetterID, Kind string }
		}
	}
	read := func(arguments string) page {
		s.t.Helper()
		var data struct{ DeadLetterActs page }
		s.ask(operator, `{ deadLetterActs`+arguments+` { totalCount pageInfo { hasNextPage endCursor } edges { node { letterId kind } } } }`, nil).into(s.t, &data)
		return data.DeadLetterActs
	}
	first := read(`(first: 1)`)
	second := read(`(first: 1, after: "` + first.PageInfo.EndCursor + `")`)
	if first.TotalCount != 2 || !first.PageInfo.HasNextPage || second.PageInfo.HasNextPage || second.TotalCount != 2 ||
		len(first.Edges) != 1 || len(second.Edges) != 1 || first.Edges[0].Node.LetterID == second.Edges[0].Node.LetterID {
		s.t.Errorf("pages %+v %+v", first, second)
	}
	kinds := 0
	for _, kind := range []string{"REPLAY", "DROP"} {
		list := read(`(kind: ` + kind + `)`)
		kinds += list.TotalCount
		for _, e := range list.Edges {
			if e.Node.Kind != kind {
				s.t.Errorf("%s among %s", e.Node.Kind, kind)
			}
		}
	}
	if kinds != 2 {
		s.t.Errorf("%d decisions by kind", kinds)
	}
	if out := s.ask(operator, `{ deadLetterActs(after: "no cursor") { totalCount } }`, nil); out.code() != "BAD_USER_INPUT" {
		s.t.Errorf("a wrong cursor: %q", out.code())
	}
}

// No scheduler runs: it would replay the letters by itself after a minute.
func TestAnOperatorReplaysAllDeadLettersInOneCall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker")
	operator := s.staff("letters@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 3, Stock: 3, PathTTL: 10 * time.Minute})
	cure := s.poison(made.Users[0].Account, made.Users[1].Account, made.Users[2].Account)
	tasks := map[string]string{} // by access token
	for _, u := range made.Users {
		p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
		if err != nil || p.OrderTask == nil {
			t.Fatalf("placed %+v %v", p, err)
		}
		tasks[u.AccessToken] = p.OrderTask.ID
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return len(s.deadLetters(operator)) == 3 }, "all messages are set aside")
	cure()
	replay := func(token, note string) (replayed, refused int, code string) {
		t.Helper()
		var data struct {
			ReplayDeadLetters struct{ Replayed, Refused int }
		}
		out := s.ask(token, `mutation($n: String!) { replayDeadLetters(input: { note: $n }) { replayed refused userErrors { code } } }`, map[string]any{"n": note})
		if out.code() == "" {
			out.into(t, &data)
		}
		return data.ReplayDeadLetters.Replayed, data.ReplayDeadLetters.Refused, out.code()
	}
	if _, _, code := replay(made.Users[0].AccessToken, "mine"); code != "FORBIDDEN" {
		t.Errorf("a buyer: %q", code)
	}
	if replayed, refused, code := replay(operator, "the migration was taken back"); replayed != 3 || refused != 0 || code != "" {
		t.Errorf("%d replayed, %d refused, %q", replayed, refused, code)
	}
	for token, task := range tasks {
		testenv.Eventually(t, testenv.Wait, func() bool { return s.taskStatus(token, task) == "SUCCEEDED" }, "each buyer has the order")
	}
	if replayed, refused, code := replay(operator, "once more"); replayed != 0 || refused != 0 || code != "" {
		t.Errorf("none is left: %d replayed, %d refused, %q", replayed, refused, code)
	}
	if report := s.drained(made.SaleID, 3); report.Stream.Dead != 0 {
		t.Errorf("report %+v", report)
	}
}
