package redisconn

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// hints maps the beginning of a server's error to what an operator should do.
var hints = []struct{ answer, hint string }{
	{"NOAUTH", "give its password: redis://:password@host:6379/0"},
	{"WRONGPASS", "put user and password right"},
	{"ERR AUTH", "it has no password: take the one in the address away"},
	{"ERR invalid password", "put the password right"},
	{"NOPERM", "let that user do this by ACL SETUSER, or name another"},
	{"ERR DB index", "it has fewer databases: put a smaller number behind the port, mostly /0"},
	{"ERR SELECT", "a Cluster has one database: put /0 behind the port"},
	{"ERR invalid DB", "put the number of a database behind the port, mostly /0"},
	{"ERR This instance has cluster support disabled", "it is no Cluster: give one address alone"},
	{"CLUSTERDOWN", "see to the Cluster: it does not have all of its slots"},
	{"LOADING", "it still reads its file: wait, and try again"},
	{"MASTERDOWN", "it is a replica without its master: give the address of the master"},
	{"ERR max number of clients", "raise maxclients at the server"},
	{"DENIED", "it is in protected mode: give it a password, or let it listen where we ask"},
}

// Hint returns how an operator can resolve an error of Open.
func Hint(err error) string {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		for _, h := range hints {
			if strings.HasPrefix(answer.Error(), h.answer) {
				return h.hint
			}
		}
		return "see to the server, whose log says more, or name another"
	}
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled):
		return "it was interrupted: start it again"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return "it speaks no TLS: write redis:// instead of rediss://"
	case strings.Contains(text, "x509: ") || strings.Contains(text, "tls: "):
		return "its certificate is not trusted: add the one that signed it to those of this host"
	case strings.Contains(text, "no such host"):
		return "there is no host of that name: put the address right"
	case errors.Is(err, io.EOF) || strings.Contains(text, "connection reset"):
		return "it closed the connection: check that it is Redis; if it requires TLS, write rediss://"
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return "nothing answers there: see to the network and its firewalls; where it speaks TLS write rediss://, else redis://"
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "start Redis there, or put the address right"
	}
	return "put the address right: redis://host:6379/0"
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}
