// Package id generates and formats identifiers. Internally an id is a UUIDv7 with a type
// for each kind (Sale, User, …), so that the compiler keeps them apart; in the API it is
// a TypeID such as sal_01jd…: opaque, sortable, unique in the whole graph.
//
// The package owns the kinds with their prefixes and the encoding of the shard in the id
// of an order task. It does not own public ids of other systems.
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

	"seckill/internal/platform/collect"
)

// ErrMalformed means that a text is not an id of the expected kind.
var ErrMalformed = errors.New("malformed id")

// Generator generates an id. Constructors take one so that tests can fix it.
type Generator func() uuid.UUID

// New returns a new id, a UUIDv7. It panics if the system's random source fails, because
// no safe id exists then.
func New[T ~[16]byte]() T { return T(uuid.Must(uuid.NewV7())) }

// Shards is the number of shards. It is fixed: a task carries its shard in its id, and
// the names of the streams derive from it.
const Shards = 16

// NewTask returns a new UUIDv7 whose last byte is the shard (0 to Shards-1), so that a
// task is found in Redis from its id alone. RFC 9562 leaves that byte to the
// implementation; 66 random bits remain.
func NewTask(shard int) Task {
	t := New[Task]()
	t[15] = byte(shard) // below Shards
	return t
}

// NewIn returns a new id of another kind that carries its shard as that of a task does.
func NewIn[T ~[16]byte](shard int) T { return T(NewTask(shard)) }

// NewTaskOf returns a new order task of a user and an item. The byte before the shard is
// the last byte of the item's id, so that the reservation of a task is looked for in few
// items. The three bytes before are the last ones of the user's id (IsOf); 34 random bits
// remain.
func NewTaskOf(sale Sale, item Item, user User) Task {
	t := NewTask(ShardOf(sale))
	t[14] = item[15]
	copy(t[11:14], user[13:])
	return t
}

// IsOf reports whether a task is of a user. For a task of another user, or of release
// 0.1, it is true once in 17 million.
func IsOf(task Task, user User) bool {
	_, err := TaskShard(task)
	return err == nil && task.UUID().Version() == 7 && bytes.Equal(task[11:14], user[13:])
}

// TimeOf returns when an id was generated, by the clock of the process that did.
func TimeOf[T ~[16]byte](u T) time.Time {
	var ms [8]byte
	copy(ms[2:], u[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC() // 48 bits
}

// MayBeOf reports whether a task may be of an item; of all other items it is false, but
// for one in 256.
func MayBeOf(task Task, sale Sale, item Item) bool {
	return int(task[15]) == ShardOf(sale) && task[14] == item[15]
}

// TaskShard returns the shard in the id of a task, or in one that NewIn returned. The
// error wraps ErrMalformed if the id cannot be such an id.
func TaskShard[T ~[16]byte](t T) (int, error) {
	if shard := int(t[15]); shard < Shards {
		return shard, nil
	}
	return 0, fmt.Errorf("%w: task %s names no shard", ErrMalformed, uuid.UUID(t))
}

// ShardOf returns the shard of a sale. All items of a sale share a shard, so that one
// script can access the whole sale.
func ShardOf(sale Sale) int { return int(sale[15]) % Shards }

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
	if len(s) <= len(k) || s[:len(k)] != string(k) || s[len(k)] != '_' {
		return uuid.Nil, otherKind(k)
	}
	got, u, err := Split(s)
	if err != nil {
		return uuid.Nil, err
	}
	if got != k {
		return uuid.Nil, otherKind(k)
	}
	return u, nil
}

// otherKind is the error of an id that is not of the kind. It is a type, because each path
// token is tried as the id of an offer.
type otherKind Kind

func (k otherKind) Error() string { return fmt.Sprintf("%v: want %s_…", ErrMalformed, string(k)) }

func (otherKind) Unwrap() error { return ErrMalformed }

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

// ParseUUID parses the UUID text of an id, as String of the id returns it.
func ParseUUID[T ~[16]byte](text string) (T, error) {
	u, err := uuid.Parse(text)
	return T(u), err
}

// As returns ids as those of another kind. An order has the id of its task.
func As[To, From ~[16]byte](from []From) []To {
	return collect.Map(from, func(u From) To { return To(u) })
}
