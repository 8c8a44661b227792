package seed

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/saleitem"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// userBatch is how many users one transaction writes: with seven values each they stay
// below the parameter limits of SQLite (32,766) and Postgres (65,535).
const userBatch = 2000

// User is a seeded account.
type User struct {
	ID      id.User
	Account string
	Name    string
	Role    auth.Role
}

// createLoadUsers writes n customers with one shared, random password. The tag makes the
// names of different runs distinct.
func (s *Seeder) createLoadUsers(ctx context.Context, now time.Time, tag string, n int) ([]User, string, error) {
	users := make([]User, n)
	for i := range users {
		users[i] = User{
			ID: id.User(s.NewID()), Account: fmt.Sprintf("buyer%06d.%s@load.example", i+1, tag),
			Name: fmt.Sprintf("Buyer %d", i+1), Role: auth.Customer,
		}
	}
	password := rand.Text()
	return users, password, s.createUsers(ctx, now, password, users)
}

// Buyers creates load accounts for an existing sale and returns them with its first item.
func (s *Seeder) Buyers(ctx context.Context, of id.Sale, n int) (*Result, error) {
	item, err := s.DB.Ent.SaleItem.Query().Where(saleitem.SaleID(of)).Order(saleitem.ByPosition()).First(ctx)
	if ent.IsNotFound(err) {
		return nil, fmt.Errorf("there is no sale %s", of.Public())
	}
	if err != nil {
		return nil, fmt.Errorf("read the sale: %w", err)
	}
	tag := s.NewID().String()
	users, password, err := s.createLoadUsers(ctx, s.now(), tag[len(tag)-10:], n)
	if err != nil {
		return nil, err
	}
	result := &Result{SaleID: of.Public(), ItemID: item.ID.Public()}
	result.Users, err = s.credentials(users, password)
	return result, err
}

// createUsers writes users that share a password, in batches.
func (s *Seeder) createUsers(ctx context.Context, now time.Time, password string, users []User) error {
	if len(users) == 0 {
		return nil
	}
	hash, err := s.Users.Hash(password)
	if err != nil {
		return fmt.Errorf("hash the password: %w", err)
	}
	for start := 0; start < len(users); start += userBatch {
		part := users[start:min(start+userBatch, len(users))]
		err := s.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			rows := collect.Map(part, func(u User) *ent.UserCreate {
				return tx.User.Create().SetID(u.ID).SetAccount(u.Account).SetDisplayName(u.Name).
					SetPasswordHash(hash).SetRole(user.Role(u.Role)).SetCreatedAt(now)
			})
			return tx.User.CreateBulk(rows...).Exec(ctx)
		})
		if err != nil {
			return fmt.Errorf("write users %d to %d: %w", start+1, start+len(part), err)
		}
	}
	return nil
}
