package seed

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/order"
	"seckill/ent/payment"
	entsale "seckill/ent/sale"
	"seckill/ent/user"
	"seckill/internal/identity/account"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// loadTitle is the title of the sale that Run creates.
const loadTitle = "Load sale"

// loadAccount matches the accounts that createLoadUsers makes; its group is the tag. .example is
// reserved, so that no mail can verify such an address.
var loadAccount = regexp.MustCompile(`^buyer\d{6,}\.([0-9a-z]{10})@load\.example$`)

// Remover removes what Run created.
type Remover struct {
	DB *postgres.DB
	// Accounts removes users; account.Admin implements it.
	Accounts interface {
		Disable(ctx context.Context, by, user id.User, why string) (*account.User, error)
		Remove(ctx context.Context, user id.User, why string) error
		Purge(ctx context.Context, users []id.User) error
	}
	// Sales hides sales and releases what disabled users hold; operator.Service implements it.
	Sales interface {
		RemoveTestSale(ctx context.Context, sale id.Sale, note string) error
		ReleaseBlocked(ctx context.Context) (map[string]int, error)
	}
}

// Removed lists what Remove did, with public ids.
type Removed struct {
	Sales    []string `json:"sales"`    // no longer shown to buyers
	Accounts int      `json:"accounts"` // removed
	Kept     []Kept   `json:"kept"`
}

// Kept is a sale or an account that was not removed, and why.
type Kept struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// removal is the reason in logs.
const removal = "seckill seed --remove"

// Remove hides the sales that Run created and removes their accounts. A sale that has orders of
// other accounts, or money of a provider, stays with its accounts. It may be repeated.
func (r *Remover) Remove(ctx context.Context) (*Removed, error) {
	byTag, tagOf, err := r.accounts(ctx)
	if err != nil {
		return nil, err
	}
	sales, err := r.sales(ctx)
	if err != nil {
		return nil, err
	}
	out := &Removed{Sales: []string{}, Kept: []Kept{}}
	for _, s := range sales {
		if s.Status == entsale.StatusCANCELLED && !s.WasPublic {
			continue // removed before, but maybe not its accounts
		}
		why, err := r.real(ctx, s.ID, tagOf)
		if err != nil {
			return out, err
		}
		if why != "" {
			out.Kept = append(out.Kept, Kept{s.ID.Public(), why})
			delete(byTag, tag(s.ID))
			continue
		}
		if err := r.Sales.RemoveTestSale(ctx, s.ID, removal); err != nil {
			return out, fmt.Errorf("remove %s: %w", s.ID.Public(), err)
		}
		out.Sales = append(out.Sales, s.ID.Public())
	}
	for _, users := range byTag {
		if err := r.removeUsers(ctx, users, out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// accounts returns the load accounts by their tags, and the tags by account.
func (r *Remover) accounts(ctx context.Context) (byTag map[string][]*ent.User, tagOf map[id.User]string, err error) {
	rows, err := r.DB.Ent.User.Query().Where(func(s *entsql.Selector) {
		account := s.C(user.FieldAccount)
		s.Where(entsql.And(entsql.HasPrefix(account, "buyer"), entsql.HasSuffix(account, "@load.example"),
			entsql.EQ(s.C(user.FieldRole), string(user.RoleCUSTOMER))))
	}).Select(user.FieldID, user.FieldAccount).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read accounts: %w", err)
	}
	byTag, tagOf = map[string][]*ent.User{}, map[id.User]string{}
	for _, row := range rows {
		if found := loadAccount.FindStringSubmatch(row.Account); found != nil {
			byTag[found[1]] = append(byTag[found[1]], row)
			tagOf[row.ID] = found[1]
		}
	}
	return byTag, tagOf, nil
}

// sales returns the sales that Run created: by no user, with an address of their id.
func (r *Remover) sales(ctx context.Context) (made []*ent.Sale, err error) {
	rows, err := r.DB.Ent.Sale.Query().Where(func(s *entsql.Selector) {
		s.Where(entsql.And(entsql.IsNull(s.C(entsale.FieldCreatedBy)),
			entsql.HasPrefix(s.C(entsale.FieldSlug), slugOf(loadTitle)+"-")))
	}).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sales: %w", err)
	}
	for _, row := range rows {
		if row.Slug == slugOf(loadTitle)+"-"+tag(row.ID) {
			made = append(made, row)
		}
	}
	return made, nil
}

// real returns why a sale may not be removed: "" when all its orders are of load accounts, and
// no provider took money for them.
func (r *Remover) real(ctx context.Context, of id.Sale, tagOf map[id.User]string) (string, error) {
	rows, err := r.DB.Ent.Order.Query().Where(order.SaleID(of)).Select(order.FieldUserID).All(ctx)
	if err != nil {
		return "", fmt.Errorf("read orders: %w", err)
	}
	others := 0
	for _, row := range rows {
		if tagOf[row.UserID] == "" {
			others++
		}
	}
	paid, err := r.DB.Ent.Payment.Query().Where(payment.ProviderNotIn(sandbox.Name), func(s *entsql.Selector) {
		orders := entsql.Table(order.Table)
		s.Where(entsql.In(s.C(payment.FieldOrderID),
			entsql.Select(orders.C(order.FieldID)).From(orders).Where(entsql.EQ(orders.C(order.FieldSaleID), of))))
	}).Exist(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("read payments: %w", err)
	case others > 0:
		return fmt.Sprintf("it has %d orders of accounts that were not made by seed: end it on its page instead", others), nil
	case paid:
		return "it has payments at a provider that takes money: refund them, and end it on its page", nil
	}
	return "", nil
}

// removeUsers removes accounts, after what they hold was released.
func (r *Remover) removeUsers(ctx context.Context, users []*ent.User, out *Removed) error {
	var busy []*ent.User
	ids := make([]id.User, 0, len(users))
	for _, u := range users {
		ids = append(ids, u.ID)
		switch err := r.Accounts.Remove(ctx, u.ID, removal); {
		case fault.ReasonOf(err) == fault.Conflict:
			busy = append(busy, u)
			if _, err := r.Accounts.Disable(ctx, id.User{}, u.ID, removal); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("remove %s: %w", u.Account, err)
		}
	}
	for released := len(busy) > 0; released; {
		counts, err := r.Sales.ReleaseBlocked(ctx)
		if err != nil {
			return err
		}
		released = counts["cancelled"]+counts["places"] > 0
	}
	kept := 0
	for _, u := range busy {
		switch err := r.Accounts.Remove(ctx, u.ID, removal); {
		case fault.ReasonOf(err) == fault.Conflict:
			kept++
			out.Kept = append(out.Kept, Kept{u.Account, "a refund of it is under way: run this again afterwards"})
		case err != nil:
			return fmt.Errorf("remove %s: %w", u.Account, err)
		}
	}
	out.Accounts += len(users) - kept
	for part := range slices.Chunk(ids, userBatch) {
		if err := r.Accounts.Purge(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
