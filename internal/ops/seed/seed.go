// Package seed creates test data in an installation: a demo catalogue, load accounts, an
// approved sale.
//
// It writes products, sales, items, their opening stock movements, and users, in bulk.
// Loading gates into Redis (Gates), and signing tokens and issuing paths (Users), belong to
// other packages. Each run creates new data and does not change existing data.
package seed

import (
	"context"
	"embed"
	"fmt"
	"net/url"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Seeder creates seed data.
type Seeder struct {
	DB    *postgres.DB
	Clock clock.Clock
	NewID id.Generator
	Gates Gates
	Users Users
}

// Gates loads the gates of sales; preload.Preloader implements it.
type Gates interface {
	// Load builds the gates of an approved sale in Redis and marks it preheated.
	Load(ctx context.Context, sale id.Sale) error
}

// Users gives users what they sign in and order with.
type Users interface {
	// Hash returns the encoded hash of a password. It is called once per run, not once
	// per user: a hash takes about 25 ms.
	Hash(password string) (string, error)
	// Token signs an access token for a user.
	Token(user User) (string, error)
	// Paths issues a path to an item for each user, in their order, without a captcha.
	Paths(ctx context.Context, in PathsInput) ([]string, error)
}

// PathsInput is the input of Users.Paths.
type PathsInput struct {
	Sale  id.Sale
	Item  id.Item
	Users []User
	TTL   time.Duration
}

// Input is the input of Run.
type Input struct {
	Users         int           // load accounts
	Stock         int           // units of the single item
	OpensIn       time.Duration // from now; 0 or less = open at once
	Lasts         time.Duration // from the opening to the end
	PurchaseLimit int           // units per user
	PaymentWindow time.Duration
	PathTTL       time.Duration // 0 = no paths
	PermitRatio   float64       // unused paths at a time per unit left; 0 = the server's default
}

// Limits of a seed.
const (
	MaxUsers = 1_000_000
	MaxStock = 10_000_000

	maxPermitRatio = 1000 // same as for operators
)

// Result lists what a seed created, with public ids, as `seed --json` prints it.
type Result struct {
	SaleID string     `json:"saleId"`
	ItemID string     `json:"itemId"`
	Users  []LoadUser `json:"users"`
}

// LoadUser is an account for load tools.
type LoadUser struct {
	Account     string `json:"account"`
	Password    string `json:"password"`
	AccessToken string `json:"accessToken"`
	Path        string `json:"path"`
}

// Validate returns what is wrong with the input, nil if it is valid.
func (in Input) Validate() error {
	switch {
	case in.Users < 0 || in.Users > MaxUsers:
		return fmt.Errorf("%d users: choose between 0 and %d", in.Users, MaxUsers)
	case in.Stock < 1 || in.Stock > MaxStock:
		return fmt.Errorf("stock of %d: choose between 1 and %d", in.Stock, MaxStock)
	case in.Lasts <= 0:
		return fmt.Errorf("a sale that lasts %s: choose a positive time", in.Lasts)
	case in.PurchaseLimit < 1 || in.PurchaseLimit > 10:
		return fmt.Errorf("purchase limit of %d: choose between 1 and 10", in.PurchaseLimit)
	case in.PaymentWindow < time.Second:
		return fmt.Errorf("payment window of %s: choose at least a second", in.PaymentWindow)
	case in.PermitRatio < 0 || in.PermitRatio > maxPermitRatio:
		return fmt.Errorf("permit ratio of %g: choose between 0 and %d", in.PermitRatio, maxPermitRatio)
	case in.PathTTL < 0:
		return fmt.Errorf("paths that live %s: choose a positive time", in.PathTTL)
	}
	return nil
}

// Run creates one product, one loaded sale of it, and load accounts.
func (s *Seeder) Run(ctx context.Context, in Input) (*Result, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	now := s.now()
	product := headphones()
	draft := saleDraft{
		title: loadTitle, rules: "Made by `seckill seed`.",
		opens: now.Add(in.OpensIn), closes: now.Add(max(in.OpensIn, 0) + in.Lasts),
		limit: in.PurchaseLimit, paymentWindow: in.PaymentWindow,
		items: []itemDraft{{goods: &product, priceMinor: 699_00, stock: in.Stock}}, permitRatio: in.PermitRatio,
	}
	made, err := s.createSale(ctx, now, draft)
	if err != nil {
		return nil, err
	}
	users, password, err := s.createLoadUsers(ctx, now, made.tag, in.Users)
	if err != nil {
		return nil, err
	}
	if err := s.Gates.Load(ctx, made.sale); err != nil {
		return nil, fmt.Errorf("load the sale: %w", err)
	}
	result := &Result{SaleID: made.sale.Public(), ItemID: made.items[0].Public()}
	if result.Users, err = s.credentials(users, password); err != nil {
		return nil, err
	}
	if in.PathTTL > 0 {
		err = s.addPaths(ctx, PathsInput{Sale: made.sale, Item: made.items[0], Users: users, TTL: in.PathTTL}, result.Users)
	}
	return result, err
}

// credentials returns the users in the form for load tools.
func (s *Seeder) credentials(users []User, password string) ([]LoadUser, error) {
	list := make([]LoadUser, len(users))
	for i, u := range users {
		list[i] = LoadUser{Account: u.Account, Password: password}
		token, err := s.Users.Token(u)
		if err != nil {
			return nil, fmt.Errorf("sign a token: %w", err)
		}
		list[i].AccessToken = token
	}
	return list, nil
}

func (s *Seeder) addPaths(ctx context.Context, in PathsInput, list []LoadUser) error {
	paths, err := s.Users.Paths(ctx, in)
	if err != nil {
		return fmt.Errorf("issue paths: %w", err)
	}
	if len(paths) != len(list) {
		return fmt.Errorf("issue paths: %d for %d users", len(paths), len(list))
	}
	for i := range list {
		list[i].Path = paths[i]
	}
	return nil
}

// now is read once per run, with the precision that clients see.
func (s *Seeder) now() time.Time { return s.Clock.Now().UTC().Truncate(time.Millisecond) }

//go:embed pictures/*.svg
var pictures embed.FS

// picture returns a drawing of the folder pictures as a data URL, so that the demo has
// pictures without files or other hosts. It is escaped, not Base64, because escaped text
// is much smaller after compression. A file that does not exist gives no picture.
func picture(name string) string {
	svg, err := pictures.ReadFile("pictures/" + name + ".svg")
	if err != nil {
		return ""
	}
	return "data:image/svg+xml," + url.PathEscape(string(svg))
}
