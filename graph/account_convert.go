package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/identity/account"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
)

// user reads a user: the caller, or any user for operators and tokens with ORDERS_READ or
// USERS_READ; otherwise nil.
func (r *Resolver) user(ctx context.Context, userID id.User) (*model.User, error) {
	p := auth.PrincipalFrom(ctx)
	if p == nil || (p.UserID != userID && !reads(ctx, auth.OrdersRead) && !reads(ctx, auth.UsersRead)) {
		return nil, nil
	}
	u, err := r.Accounts.Directory().User(ctx, userID)
	if err != nil {
		return nil, err
	}
	out := toUser(u)
	if out != nil && p.UserID == userID {
		out.GrantedRole = &p.Role
	}
	return out, nil
}

func toSignedIn(s *account.SignedIn) *model.User {
	out := toUser(s.User)
	out.GrantedRole = &s.Role
	return out
}

func toUser(u *account.User) *model.User {
	if u == nil {
		return nil
	}
	return &model.User{
		ID: u.ID, Account: &u.Account, DisplayName: u.DisplayName,
		Role: u.Role, CreatedAt: u.CreatedAt, Disabled: &u.Disabled, Totp: &u.TOTP, ContactVerified: &u.Verified,
		ExternalID: unlessZero(u.ExternalID),
	}
}

// toTokens returns the tokens. For a client that requested cookies, only the access token
// is in the result and the others are set as cookies.
func toTokens(ctx context.Context, s *account.SignedIn) *model.AuthTokens {
	if s == nil {
		return nil
	}
	out := &model.AuthTokens{
		AccessToken: s.Tokens.Access, AccessTokenExpiresAt: s.Tokens.AccessExpiresAt,
		RefreshToken: &s.Tokens.Refresh, RefreshTokenExpiresAt: s.Tokens.RefreshExpiresAt,
	}
	if s.Device != "" {
		out.DeviceToken = &s.Device
	}
	if cookie := auth.CookieFrom(ctx); cookie != nil {
		cookie.Set(s.Tokens.Refresh, s.Tokens.RefreshExpiresAt)
		if s.Device != "" {
			cookie.SetDevice(s.Device, s.DeviceExpiresAt)
		}
		out.RefreshToken, out.DeviceToken = nil, nil
	}
	return out
}

// shownDevice returns the device token of a login, from its input or else its cookie.
func shownDevice(ctx context.Context, input model.LoginInput) string {
	if token := deref(input.DeviceToken); token != "" {
		return token
	}
	return auth.CookieFrom(ctx).Device()
}

// userPage parses the arguments of the users query.
func userPage(first int, after, search *string, role *auth.Role, disabled *bool) (account.ListInput, error) {
	from, err := cursor.Parse(after, id.ParseUser)
	return account.ListInput{After: from, Search: deref(search), Role: role, Disabled: disabled, Limit: first}, err
}

func toUserConnection(page account.Page) *model.UserConnection {
	out := toPage(
		pageOf(page.Users, func(u *account.User) string { return u.ID.Public() }, page.HasNext, page.HasPrevious),
		toUser, func(n *model.User, cursor string) *model.UserEdge { return &model.UserEdge{Cursor: cursor, Node: n} })
	return &model.UserConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info}
}

// changeUser runs a change of the user with a public id and returns the user as changed.
func changeUser(ctx context.Context, userID string, do func(by, user id.User) (*account.User, error)) (*model.User,
	error) {
	u, err := id.ParseUser(userID)
	if err != nil {
		return nil, unknown("userId")
	}
	changed, err := do(auth.PrincipalFrom(ctx).UserID, u)
	if err == nil && changed == nil {
		err = unknown("userId")
	}
	return toUser(changed), err
}

func (r *Resolver) toServiceToken(ctx context.Context, t *servicetoken.Token) (*model.ServiceToken, error) {
	if t == nil {
		return nil, nil
	}
	out := &model.ServiceToken{
		ID: t.ID, Name: t.Name, Scopes: t.Scopes,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, LastUsedAt: t.LastUsedAt,
	}
	if t.CreatedBy == nil {
		return out, nil
	}
	var err error
	out.CreatedBy, err = r.user(ctx, *t.CreatedBy)
	return out, err
}

func (r *Resolver) toServiceTokens(ctx context.Context, list []*servicetoken.Token) ([]*model.ServiceToken, error) {
	out := make([]*model.ServiceToken, len(list))
	for i, t := range list {
		var err error
		if out[i], err = r.toServiceToken(ctx, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}
