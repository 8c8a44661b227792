package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

func TestEventsAreFollowedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	environ := services(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: strings.TrimPrefix(environ[0], "SECKILL_DATABASE_URL=")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	batch := time.Now().UnixMilli()
	write := func(subject string) {
		t.Helper()
		batch++
		err := db.Ent.WebhookEvent.Create().SetMessageID(id.New[id.Event]()).SetKind("stock.low").SetSubject(subject).
			SetPayload([]byte(`{"type":"stock.low"}`)).SetBatch(batch).SetCreatedAt(time.Now()).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	write("itm_1")
	follow := process(t, environ, "events", "--follow")
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var event struct {
		Cursor, Subject string
		Event           struct{ Type string }
	}
	read := func(subject string) {
		t.Helper()
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &event) != nil || event.Subject != subject || event.Event.Type != "stock.low" {
			t.Fatalf("printed %q, want an event of %s", lines.Text(), subject)
		}
	}
	read("itm_1")
	first := event.Cursor
	write("itm_2") // while it waits
	read("itm_2")
	if err := follow.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("printed %q after the interrupt", lines.Text())
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	rest := command(t, environ, "events", "--after", first)
	rest.wants(t, exitOK)
	if strings.Count(rest.stdout, "\n") != 1 || !strings.Contains(rest.stdout, "itm_2") {
		t.Errorf("after the first cursor: %s", rest.stdout)
	}
	command(t, environ, "events", "--after", "x").wants(t, exitUnfit, `--after "x" is no cursor`)
	command(t, environ, "events", "--kinds", "order.sold").wants(t, exitUnfit, `--kinds "order.sold": choose from`)
	none := command(t, environ, "events", "--kinds", "order.paid")
	none.wants(t, exitOK)
	if none.stdout != "" {
		t.Errorf("other kinds: %s", none.stdout)
	}
}
