package member

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/accessmember"
	"seckill/ent/user"
	"seckill/internal/buy/access"
	"seckill/internal/identity/account"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// By is what rows name a member by.
type By string

// Values of By.
const (
	ByAccount    By = "ACCOUNT"     // public id
	ByContact    By = "CONTACT"     // e-mail address or phone number
	ByExternalID By = "EXTERNAL_ID" // id in another system
)

// Mode is what a change does with its rows.
type Mode string

// Modes.
const (
	Add     Mode = "ADD"
	Remove  Mode = "REMOVE"
	Replace Mode = "REPLACE" // the list has these members alone
)

// Change is a change of a list. A file is sent in several: the first may replace the list, the
// others add to it.
type Change struct {
	List      string // a-z, 0-9 and -, at most access.MaxName
	Mode      Mode
	By        By
	Rows      []string // lines of a CSV file, of which the first cell counts; empty ones are skipped
	FirstLine int      // of Rows in the file
}

// Changed is the outcome of a Change.
type Changed struct {
	Rows     int // that were applied
	Members  int // of the list now
	Problems []Problem
}

// Reason is what is wrong with a row.
type Reason string

// Reasons.
const (
	Malformed      Reason = "MALFORMED"       // not applied
	UnknownAccount Reason = "UNKNOWN_ACCOUNT" // no account has the id; not applied
	NoAccountYet   Reason = "NO_ACCOUNT_YET"  // applied: it counts once an account has the contact, verified, or the id
)

// Problem is a row that names no account.
type Problem struct {
	Line   int
	Reason Reason
}

// row is a row that can be read.
type row struct {
	line   int
	member string
	value  any // by which its account is looked up
}

// Apply changes a list, and records by whom. Refusals: INVALID_INPUT; CONFLICT above MaxLists or
// MaxMembers.
func (s *Service) Apply(ctx context.Context, by id.User, c Change) (Changed, error) {
	if err := c.check(); err != nil {
		return Changed{}, err
	}
	rows, out := s.read(c)
	if err := s.lookUp(ctx, c.By, &rows, &out); err != nil {
		return Changed{}, err
	}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int { return a.Line - b.Line })
	out.Rows = len(rows)
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if err := apply(ctx, tx, c, rows, s.cfg.Clock.Now()); err != nil {
			return err
		}
		out.Members, err = tx.AccessMember.Query().Where(accessmember.List(c.List)).Count(ctx)
		if err == nil && c.Mode != Remove {
			err = bounded(ctx, tx, out.Members, out.Members <= len(rows))
		}
		return err
	})
	if err != nil {
		return Changed{}, fmt.Errorf("change list %s: %w", c.List, err)
	}
	s.local.Purge()
	s.cfg.Security.Write(ctx, account.Event{Kind: account.EventMembers, Actor: by,
		Detail: fmt.Sprintf("%s %d to list %s: %d members", c.Mode, out.Rows, c.List, out.Members)})
	return out, nil
}

func (c Change) check() error {
	var list, rows error
	if !access.ValidList(c.List) {
		list = fault.BadField{At: []string{"list"}, Rule: fault.SlugFormat}
	}
	if len(c.Rows) > MaxRows {
		rows = fault.BadField{At: []string{"rows"}, Rule: fault.Max(MaxRows)}
	}
	return fault.All(list, rows)
}

// read parses rows.
func (s *Service) read(c Change) (rows []row, out Changed) {
	for i, text := range c.Rows {
		line := c.FirstLine + i
		if strings.TrimSpace(text) == "" {
			continue
		}
		r, ok := s.parse(c.By, text)
		if !ok {
			out.Problems = append(out.Problems, Problem{line, Malformed})
			continue
		}
		r.line = line
		rows = append(rows, r)
	}
	return rows, out
}

func (s *Service) parse(by By, text string) (row, bool) {
	cells, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return row{}, false
	}
	cell := typed.Identifier(strings.TrimPrefix(cells[0], "\ufeff")) // byte order mark of a file
	switch by {
	case ByAccount:
		u, err := id.ParseUser(cell)
		return row{member: byAccount(u), value: u}, err == nil
	case ByContact:
		contact, ok := s.cfg.Names.Normalise(cell)
		return row{member: byContact(s.hashers[0], contact), value: contact}, ok
	case ByExternalID:
		return row{member: byExternalID(cell), value: cell}, account.ValidExternalID(cell)
	}
	return row{}, false
}

// lookUp reports the rows without an account, and drops those that cannot get one.
func (s *Service) lookUp(ctx context.Context, by By, rows *[]row, out *Changed) error {
	if len(*rows) == 0 {
		return nil
	}
	column := map[By]string{ByAccount: user.FieldID, ByContact: user.FieldAccount, ByExternalID: user.FieldExternalID}[by]
	values := collect.Map(*rows, func(r row) any { return r.value })
	found, err := s.cfg.DB.Ent.User.Query().Where(func(q *sql.Selector) { q.Where(sql.In(q.C(column), values...)) },
		user.Not(user.AccountHasPrefix(account.DeletedPrefix))).All(ctx)
	if err != nil {
		return fmt.Errorf("look up members: %w", err)
	}
	there := make(map[any]bool, len(found))
	for _, u := range found {
		switch by {
		case ByAccount:
			there[u.ID] = true
		case ByContact:
			there[u.Account] = true
		case ByExternalID:
			there[*u.ExternalID] = true
		}
	}
	*rows = slices.DeleteFunc(*rows, func(r row) bool {
		if there[r.value] {
			return false
		}
		reason := NoAccountYet
		if by == ByAccount {
			reason = UnknownAccount
		}
		out.Problems = append(out.Problems, Problem{r.line, reason})
		return by == ByAccount
	})
	return nil
}

func apply(ctx context.Context, tx *ent.Tx, c Change, rows []row, now time.Time) error {
	members := collect.Map(rows, func(r row) string { return r.member })
	switch c.Mode {
	case Remove:
		_, err := tx.AccessMember.Delete().Where(accessmember.List(c.List), accessmember.MemberIn(members...)).Exec(ctx)
		return err
	case Replace:
		if _, err := tx.AccessMember.Delete().Where(accessmember.List(c.List)).Exec(ctx); err != nil {
			return err
		}
	case Add:
	}
	if len(rows) == 0 {
		return nil
	}
	insert := sql.Insert(accessmember.Table).Columns(accessmember.Columns...)
	for _, member := range members {
		insert.Values(id.New[uuid.UUID](), c.List, member, now)
	}
	return postgres.Insert(ctx, tx, insert.OnConflict(
		sql.ConflictColumns(accessmember.FieldMember, accessmember.FieldList), sql.DoNothing()))
}

// bounded refuses too many members, or with a list that may be new too many lists.
func bounded(ctx context.Context, tx *ent.Tx, members int, mayBeNew bool) error {
	var lists []string
	var err error
	if mayBeNew {
		lists, err = tx.AccessMember.Query().Where(noCodes).Unique(true).Select(accessmember.FieldList).Strings(ctx)
	}
	if err == nil && (members > MaxMembers || len(lists) > MaxLists) {
		err = fault.Refused{Why: fault.Conflict, At: []string{"list"}}
	}
	return err
}

// noCodes leaves out the lists of codes.
var noCodes = accessmember.Not(accessmember.ListHasPrefix(codeLists))

// Lists returns the lists with the number of their members, by name.
func (s *Service) Lists(ctx context.Context) ([]ListSize, error) {
	var lists []ListSize
	err := s.cfg.DB.Ent.AccessMember.Query().Where(noCodes).
		GroupBy(accessmember.FieldList).Aggregate(ent.Count()).Scan(ctx, &lists)
	if err != nil {
		return nil, fmt.Errorf("read the lists of members: %w", err)
	}
	slices.SortFunc(lists, func(a, b ListSize) int { return strings.Compare(a.List, b.List) })
	return lists, nil
}

// ListSize is a list and the number of its members.
type ListSize struct {
	List  string `json:"list"`
	Count int    `json:"count"`
}
