package doctor_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"seckill/internal/ops/doctor"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// answering returns the address of a server that gives each line the same answer; with no
// answer, it closes the connection.
func answering(t *testing.T, answer string) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer context.AfterFunc(t.Context(), func() { c.Close() })() // a client may leave one open
				defer c.Close()
				for lines := bufio.NewScanner(c); answer != "" && lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "*") { // a command begins
						_, _ = io.WriteString(c, answer)
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l.Addr().String()
}

func TestARedisThatCannotBeUsedIsReportedWithWhatToDo(t *testing.T) {
	t.Parallel()
	working, err := url.Parse(testenv.RedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	database := testdb.PostgresURL(t)
	for address, want := range map[string]string{
		"redis://127.0.0.1:1/0":                                                                 "start Redis there, or put the address right",
		"redis://" + working.Host + "/99999":                                                    "put a smaller number behind the port, mostly /0",
		"redis://" + answering(t, "") + "/0":                                                    "it closed the connection: check that it is Redis; if it requires TLS, write rediss://",
		"redis://" + answering(t, "-NOAUTH Authentication required.\r\n") + "/0":                "give its password: redis://:password@host:6379/0",
		"redis://:x@" + answering(t, "-WRONGPASS invalid username-password pair\r\n") + "/0":    "put user and password right",
		"redis://" + answering(t, "-LOADING Redis is loading the dataset in memory\r\n") + "/0": "wait, and try again",
		"rediss://" + working.Host + "/0":                                                       "where it speaks TLS write rediss://, else redis://",
		"redis://" + working.Host + ",redis://" + working.Host:                                  "it is no Cluster: give one address alone",
	} {
		findings := doctor.Check(t.Context(), deps(t, database, address))
		wants(t, findings, "redis", doctor.Error, want+" (SECKILL_REDIS_URL)")
	}
}

func TestAPostgresThatCannotBeUsedIsReportedWithWhatToDo(t *testing.T) {
	t.Parallel()
	database := testdb.PostgresURL(t)
	changed := func(change func(u *url.URL, q url.Values)) string {
		u, err := url.Parse(database)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		change(u, q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for address, want := range map[string]string{
		"postgres://127.0.0.1:1/x?sslmode=disable":                                 "start Postgres there, or put the address right",
		changed(func(_ *url.URL, q url.Values) { q.Del("sslmode") }):               "put ?sslmode=disable behind the address",
		changed(func(u *url.URL, _ url.Values) { u.Path = "/nodb" }):               "make that database with createdb, or name another",
		changed(func(u *url.URL, _ url.Values) { u.User = url.User("unknown_x") }): "put user and password right",
		changed(func(_ *url.URL, q url.Values) { q.Set("sslmode", "maybe") }):      "put the address right: postgres://",
	} {
		findings := doctor.Check(t.Context(), deps(t, address, testenv.RedisURL(t)))
		wants(t, findings, "postgres", doctor.Error, want)
		wants(t, findings, "postgres", doctor.Error, "(SECKILL_DATABASE_URL)")
	}
}
