package order

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"seckill/ent"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// TaskStatus is the state of an order task.
type TaskStatus string

// States of a task.
const (
	Submitted TaskStatus = "SUBMITTED" // stock is reserved in Redis; waiting for the writer
	Succeeded TaskStatus = "SUCCEEDED" // the order exists
	Failed    TaskStatus = "FAILED"    // no order; the reserved units are returned
)

// Revisions of a task.
const (
	revisionSubmitted int64 = 1
	revisionDelayed   int64 = 2
	// RevisionEnded is the revision of a task that has ended.
	RevisionEnded int64 = 3
)

// DelayedAfter is the time after which a SUBMITTED task is delayed: a worker needs
// milliseconds.
const DelayedAfter = 10 * time.Second

// Task is an attempt to buy that was accepted by the gate.
type Task struct {
	ID       id.Task
	User     id.User
	Sale     id.Sale
	Item     id.Item
	Quantity int
	Status   TaskStatus
	Revision int64        // 1 SUBMITTED, 2 delayed, 3 ended
	Delayed  bool         // SUBMITTED for longer than DelayedAfter
	OrderID  id.Order     // the task's own id once SUCCEEDED, else zero
	Failure  fault.Reason // why it failed, else ""
	// Vanished reports that no store has the task. It is known from its id alone, which anyone
	// can make up: nothing proves that the shop accepted it.
	Vanished bool

	CreatedAt time.Time // when stock was reserved
	UpdatedAt time.Time
}

// NewSubmitted returns a task without the fields of its state as one that was accepted at
// the given time.
func NewSubmitted(t Task, at time.Time) *Task {
	t.Status, t.Revision, t.CreatedAt, t.UpdatedAt = Submitted, revisionSubmitted, at, at
	return &t
}

// Ended reports whether the task is in a final state.
func (t *Task) Ended() bool { return t.Status == Succeeded || t.Status == Failed }

// at returns a task as of a time: delayed, if no worker has ended it in time.
func (t *Task) at(now time.Time) *Task {
	if t == nil || t.Status != Submitted || now.Sub(t.CreatedAt) < DelayedAfter {
		return t
	}
	late := *t
	late.Delayed, late.Revision, late.UpdatedAt = true, revisionDelayed, t.CreatedAt.Add(DelayedAfter)
	return &late
}

// taskRecord is the JSON form of a task, in Redis and in status messages.
type taskRecord struct {
	ID          id.Task      `json:"id"`
	User        id.User      `json:"user"`
	Sale        id.Sale      `json:"sale"`
	Item        id.Item      `json:"item"`
	Quantity    int          `json:"quantity"`
	Status      TaskStatus   `json:"status"`
	Revision    int64        `json:"revision"`
	Failure     fault.Reason `json:"failure,omitempty"`
	Vanished    bool         `json:"vanished,omitempty"`
	CreatedAtMs int64        `json:"createdAtMs"`
	UpdatedAtMs int64        `json:"updatedAtMs"`
}

// MarshalJSON returns the record of a task; times are Unix milliseconds.
func (t Task) MarshalJSON() ([]byte, error) { return t.appendRecord(make([]byte, 0, 320)), nil }

// appendRecord appends the record of a task in the form of taskRecord. It does not use
// encoding/json because every order of a sale passes here.
func (t *Task) appendRecord(dst []byte) []byte {
	dst = appendID(append(dst, `{"id":`...), t.ID)
	dst = appendID(append(dst, `,"user":`...), t.User)
	dst = appendID(append(dst, `,"sale":`...), t.Sale)
	dst = appendID(append(dst, `,"item":`...), t.Item)
	dst = strconv.AppendInt(append(dst, `,"quantity":`...), int64(t.Quantity), 10)
	dst = appendWord(append(dst, `,"status":`...), string(t.Status))
	dst = strconv.AppendInt(append(dst, `,"revision":`...), t.Revision, 10)
	if t.Failure != "" {
		dst = appendWord(append(dst, `,"failure":`...), string(t.Failure))
	}
	if t.Vanished {
		dst = append(dst, `,"vanished":true`...)
	}
	dst = strconv.AppendInt(append(dst, `,"createdAtMs":`...), t.CreatedAt.UnixMilli(), 10)
	dst = strconv.AppendInt(append(dst, `,"updatedAtMs":`...), t.UpdatedAt.UnixMilli(), 10)
	return append(dst, '}')
}

// UnmarshalJSON parses the record of a task.
func (t *Task) UnmarshalJSON(text []byte) error {
	var r taskRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("decode task record: %w", err)
	}
	*t = Task{
		ID: r.ID, User: r.User, Sale: r.Sale, Item: r.Item, Quantity: r.Quantity, Status: r.Status,
		Revision: r.Revision, Failure: r.Failure, Vanished: r.Vanished,
		CreatedAt: time.UnixMilli(r.CreatedAtMs).UTC(), UpdatedAt: time.UnixMilli(r.UpdatedAtMs).UTC(),
	}
	if t.Status == Succeeded {
		t.OrderID = id.Order(t.ID)
	}
	if t.Ended() {
		t.Revision = RevisionEnded // records of earlier versions have 2
	}
	return nil
}

// Failure is the end of a task without an order.
type Failure struct {
	ID         id.Task // the task's id
	Sale       id.Sale
	Item       id.Item
	User       id.User
	Quantity   int
	Code       fault.Reason // shown to the buyer
	Reason     string       // for operators
	ReservedAt time.Time
	CreatedAt  time.Time
}

// Task returns the failed task.
func (f *Failure) Task() Task {
	return Task{
		ID: f.ID, User: f.User, Sale: f.Sale, Item: f.Item, Quantity: f.Quantity,
		Status: Failed, Revision: RevisionEnded, Failure: f.Code, Vanished: f.Reason == ReasonVanished,
		CreatedAt: f.ReservedAt, UpdatedAt: f.CreatedAt,
	}
}

func failureFromRow(row *ent.OrderFailure) *Failure {
	return &Failure{
		ID: row.ID, Sale: row.SaleID, Item: row.ItemID, User: row.UserID, Quantity: row.Quantity,
		Code: fault.Reason(row.Code), Reason: row.Reason,
		ReservedAt: row.ReservedAt.UTC(), CreatedAt: row.CreatedAt.UTC(),
	}
}
