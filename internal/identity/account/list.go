package account

import (
	"context"
	"fmt"
	"strings"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

// maxPage limits the length of a page of users.
const maxPage = 200

// ListInput selects a page of users, newest first. Its filters are combined with AND.
type ListInput struct {
	By       id.User    // who reads it, for the security log; Nil = the command line, which is not logged
	Search   string     // a public id, the beginning of an account, or part of a name; "" = all
	Role     *auth.Role // nil = all
	Disabled *bool      // nil = all
	After    id.User    // only users older than this one; Nil = from the newest
	Limit    int        // 1 to 200
}

// Page is a page of users, newest first.
type Page struct {
	Users       []*User
	HasNext     bool // there are older users
	HasPrevious bool // there may be newer users
}

// minDigits is how many digits of a phone number are searched in accounts of every country.
const minDigits = 7

// Search matches users by a public id, else by an account in any form or its beginning, a
// part of the name, or the id in another system.
func (n Names) Search(q typed.Query) predicate.User {
	if userID, err := id.ParseUser(strings.ToLower(q.Key)); err == nil {
		return user.ID(userID)
	}
	match := []predicate.User{user.AccountHasPrefix(strings.ToLower(q.Key)), user.DisplayNameContainsFold(q.Line),
		user.ExternalID(q.Key)}
	if q.Plain != q.Line {
		match = append(match, user.DisplayNameContainsFold(q.Plain))
	}
	if account, ok := n.Normalise(q.Key); ok {
		match = append(match, user.Account(account))
	}
	if digits := typed.Digits(q.Key); len(digits) >= minDigits {
		match = append(match, user.And(user.AccountHasPrefix("+"), user.AccountHasSuffix(digits)))
	}
	return user.Or(match...)
}

// List returns a page of users. Their ids grow with time.
func (a *Admin) List(ctx context.Context, in ListInput) (Page, error) {
	if in.Limit < 1 || in.Limit > maxPage {
		return Page{}, fmt.Errorf("list users: page of %d, want 1 to %d", in.Limit, maxPage)
	}
	query := a.cfg.Store.db.Ent.User.Query().Order(ent.Desc(user.FieldID)).Limit(in.Limit + 1)
	if !in.After.IsZero() {
		query.Where(user.IDLT(in.After))
	}
	if in.Role != nil {
		query.Where(user.RoleEQ(user.Role(*in.Role)))
	}
	if in.Disabled != nil && *in.Disabled {
		query.Where(user.DisabledAtNotNil())
	} else if in.Disabled != nil {
		query.Where(user.DisabledAtIsNil())
	}
	if q := typed.QueryOf(in.Search); q.Line != "" {
		query.Where(a.cfg.Store.names.Search(q))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return Page{}, fmt.Errorf("list users: %w", err)
	}
	if !in.By.IsZero() {
		a.cfg.Security.Write(ctx, Event{Kind: EventBuyerSearch, Actor: in.By,
			Detail: fmt.Sprintf("%d listed", min(len(rows), in.Limit))})
	}
	page := Page{HasNext: len(rows) > in.Limit, HasPrevious: !in.After.IsZero()}
	for _, row := range rows[:min(len(rows), in.Limit)] {
		page.Users = append(page.Users, toUser(row))
	}
	return page, nil
}
