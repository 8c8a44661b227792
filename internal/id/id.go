// Package id generates and formats identifiers. Internally an id is a UUIDv7; in the
// API it is a TypeID such as sal_01jd…: opaque, sortable, unique in the whole graph.
//
// The package owns the prefixes and the encoding of the shard in the id of an order
// task.
package id

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.jetify.com/typeid"
)

// Kind is the prefix of a public id.
type Kind string

// Kinds of public ids.
const (
	User      Kind = "usr"
	Session   Kind = "ses"
	Goods     Kind = "gds"
	Sale      Kind = "sal"
	Item      Kind = "itm"
	Task      Kind = "tsk"
	Order     Kind = "ord"
	Challenge Kind = "cap"
	Ticket    Kind = "tkt"
	Waitlist  Kind = "wtl"
	Payment   Kind = "pay"
	Refund    Kind = "rfd"
	Act       Kind = "act" // an act of an operator that moves units
	Held      Kind = "hld" // money that needs a decision of an operator
	Endpoint  Kind = "whe" // an address that receives events
	Event     Kind = "evt" // a fact that is published to other systems
	Address   Kind = "adr" // of a user's address book
	Delivery  Kind = "dlv" // an event on its way to an endpoint
	Template  Kind = "tpl" // a sale without its times
	Device    Kind = "dev" // a browser that gets notices

	ServiceToken Kind = "svt" // lets another system use the API
)

// ErrMalformed means that a text is not an id of the expected kind.
var ErrMalformed = errors.New("malformed id")

// Generator generates an id. Constructors take one so that tests can fix it.
type Generator func() uuid.UUID

// New returns a new UUIDv7. It panics if the system's random source fails, because no
// safe id exists then.
func New() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// Shards is the number of shards. It is fixed: a task carries its shard in its id, and
// the names of the streams derive from it.
const Shards = 16

// NewTask returns a new UUIDv7 whose last byte is the shard (0 to Shards-1), so that a
// task is found in Redis from its id alone. RFC 9562 leaves that byte to the
// implementation; 66 random bits remain.
func NewTask(shard int) uuid.UUID {
	u := New()
	u[15] = byte(shard) //nolint:gosec // below Shards
	return u
}

// NewTaskOf returns a new order task of a user and an item. The byte before the shard is
// the last byte of the item's id, so that the reservation of a task is looked for in few
// items. The three bytes before are the last ones of the user's id (IsOf); 34 random bits
// remain.
func NewTaskOf(sale, item, user uuid.UUID) uuid.UUID {
	u := NewTask(ShardOf(sale))
	u[14] = item[15]
	copy(u[11:14], user[13:])
	return u
}

// IsOf reports whether a task is of a user. For a task of another user, or of release
// 0.1, it is true once in 17 million.
func IsOf(task, user uuid.UUID) bool {
	_, err := TaskShard(task)
	return err == nil && task.Version() == 7 && bytes.Equal(task[11:14], user[13:])
}

// TimeOf returns when an id was generated, by the clock of the process that did.
func TimeOf(u uuid.UUID) time.Time {
	var ms [8]byte
	copy(ms[2:], u[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC() //nolint:gosec // 48 bits
}

// MayBeOf reports whether a task may be of an item; of all other items it is false, but
// for one in 256.
func MayBeOf(task, sale, item uuid.UUID) bool {
	return int(task[15]) == ShardOf(sale) && task[14] == item[15]
}

// TaskShard returns the shard in a task id. The error wraps ErrMalformed if the id
// cannot be a task's.
func TaskShard(u uuid.UUID) (int, error) {
	if shard := int(u[15]); shard < Shards {
		return shard, nil
	}
	return 0, fmt.Errorf("%w: task %s names no shard", ErrMalformed, u)
}

// ShardOf returns the shard of a sale. All items of a sale share a shard, so that one
// script can access the whole sale.
func ShardOf(sale uuid.UUID) int { return int(sale[15]) % Shards }

// Format returns the public form of an id, for example "sal_01jd…".
func Format(k Kind, u uuid.UUID) string {
	t, err := typeid.FromUUIDBytesWithPrefix(string(k), u[:])
	if err != nil {
		panic(fmt.Sprintf("id: prefix %q: %v", k, err)) // prefixes are constants of this package
	}
	return t.String()
}

// Parse parses the public form of an id of kind k. The error wraps ErrMalformed.
func Parse(k Kind, s string) (uuid.UUID, error) {
	got, u, err := Split(s)
	if err != nil {
		return uuid.Nil, err
	}
	if got != k {
		return uuid.Nil, fmt.Errorf("%w: want %s_…", ErrMalformed, k)
	}
	return u, nil
}

// Split parses a public id of any kind. The error wraps ErrMalformed.
func Split(s string) (Kind, uuid.UUID, error) {
	if len(s) > 64 || !strings.Contains(s, "_") {
		return "", uuid.Nil, ErrMalformed
	}
	t, err := typeid.FromString(s)
	if err != nil {
		return "", uuid.Nil, ErrMalformed
	}
	u, err := uuid.FromBytes(t.UUIDBytes())
	if err != nil {
		return "", uuid.Nil, ErrMalformed
	}
	return Kind(t.Prefix()), u, nil
}
