//go:build attack

package attack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lib/pq"

	"seckill/ent"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Sizes of the simulation.
const (
	honestPeople = 1000
	farmerIDs    = 10_000
	farmerBoxes  = 50 // mailboxes
	farmerPlaces = 5  // delivery addresses
	farmerCards  = 5

	couples, families = 20, 5 // households of two and of three people
	campusPeople      = 150   // behind one address
	carrierPeople     = 100   // behind four addresses of one provider
	twoAddresses      = 50    // people with a second address
	twoAccounts       = 50    // people with a second account, which they do not use
)

// group is why a person could be refused wrongly.
type group string

const (
	household group = "household"
	campus    group = "campus"
	carrier   group = "carrier"
	twoPlaces group = "two addresses"
	twoIDs    group = "two accounts"
	alone     group = "alone"
)

// simulated is an account of the simulation.
type simulated struct {
	token   string
	account string
	group   group
	from    string        // client address; "" = any of the farmer's
	card    string        // "" = any of the farmer's
	comes   time.Duration // after the opening
	place   place
}

// place is a delivery address as it is typed.
type place struct{ city, street, postal string }

// farmerPlace spells a place of the farmer in the n-th way.
func farmerPlace(which, n int) place {
	spelled := []string{
		"%d Main Street, Apt 4", "%d Main St. apt #4", "%d, MAIN STREET APARTMENT 4", "No. %d Main Strèet - Unit 4", "%d  main st apt. no. 4", "%d Main Ｓｔｒｅｅｔ Ａｐｔ ４",
	}
	postal := []string{"62701", " 62701", "62701-0001", "６２７０１", fmt.Sprintf("62701-%04d", n%10_000)}
	city := []string{"Springfield", "SPRINGFIELD", "Spring Field", "springfield, il"}
	return place{city[n%len(city)], fmt.Sprintf(spelled[n%len(spelled)], 100+which), strings.TrimSpace(norm(postal[n%len(postal)]))}
}

// norm leaves a postal code that the address book accepts.
func norm(postal string) string {
	return strings.Map(func(r rune) rune {
		if r >= '０' && r <= '９' {
			return r - '０' + '0'
		}
		return r
	}, postal)
}

// population makes up the people and the farmer's accounts, by a fixed seed.
func population() (people, farmer []simulated) {
	random := rand.New(rand.NewPCG(42, 1)) //nolint:gosec // the same people in each run
	home := func(n int) place { return place{"Shelbyville", fmt.Sprintf("%d Oak Avenue", 1+n), "62565"} }
	network := func(n int) string { return fmt.Sprintf("%d.%d.%d.7", 60+n%20, n/20%250, 1+n%200) }
	add := func(g group, p place, from string) {
		n := len(people)
		people = append(people, simulated{
			account: fmt.Sprintf("person%04d@gmail.com", n), group: g, place: p, from: from, card: fmt.Sprintf("card of person %d", n),
			comes: time.Duration(2000+random.IntN(6000)) * time.Millisecond, // bots take tenths of a second,
		})
	}
	homes := 0
	for n := range couples + families {
		size := 2
		if n >= couples {
			size = 3
		}
		for range size {
			add(household, home(homes), network(homes))
		}
		homes++
	}
	for n := range campusPeople {
		add(campus, place{"Capital City", fmt.Sprintf("1 University Road, Room %d", 100+n), "62705"}, "150.1.1.1")
	}
	for n := range carrierPeople {
		add(carrier, home(homes), fmt.Sprintf("100.128.%d.1", n%4))
		homes++
	}
	for of, n := range map[group]int{twoPlaces: twoAddresses, twoIDs: twoAccounts} {
		for range n {
			add(of, home(homes), network(homes))
			homes++
		}
	}
	for len(people) < honestPeople {
		add(alone, home(homes), network(homes))
		homes++
	}
	for n := range farmerIDs {
		box := n % farmerBoxes
		name := fmt.Sprintf("farm%02d+%d@outlook.com", box, n)
		if box%2 == 0 { // dots and tags
			name = fmt.Sprintf("f.arm%02d+%d@gmail.com", box, n)
			if n%3 == 0 {
				name = fmt.Sprintf("fa.r.m%02d+%d@googlemail.com", box, n)
			}
		}
		farmer = append(farmer, simulated{account: name, place: farmerPlace(n%farmerPlaces, n/farmerPlaces)})
	}
	return people, farmer
}

// settle writes the accounts of the simulation, verified and with an address, in bulk.
func (s *target) settle(all []*simulated) error {
	made, err := s.sale(seed.Input{Users: len(all), Stock: 1})
	if err != nil {
		return err
	}
	var seeded, accounts, ids, cities, streets, postals []string
	for i, a := range all {
		a.token = made.Users[i].AccessToken
		seeded, accounts, ids = append(seeded, made.Users[i].Account), append(accounts, a.account), append(ids, id.New[id.Address]().String())
		cities, streets, postals = append(cities, a.place.city), append(streets, a.place.street), append(postals, a.place.postal)
	}
	return s.write(func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `
			WITH people AS (SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[]) AS p (seeded, account, id, city, street, postal)),
			named AS (UPDATE users SET account = p.account, verified_at = now(), created_at = now() - interval '90 days' FROM people p WHERE users.account = p.seeded RETURNING users.id, p.account)
			INSERT INTO addresses (id, user_id, slot, is_default, created_at, name, phone, country, region, city, street, postal_code)
			SELECT p.id, named.id, 0, true, now(), p.account, '+12175550123', 'US', 'IL', p.city, p.street, p.postal FROM people p JOIN named USING (account)`,
			pq.Array(seeded), pq.Array(accounts), pq.Array(ids), pq.Array(cities), pq.Array(streets), pq.Array(postals))
		if err != nil {
			return err
		}
		// A second address, and a second account of the same mailbox and place.
		_, err = tx.ExecContext(ctx, `
			INSERT INTO addresses (id, user_id, slot, is_default, created_at, name, phone, country, region, city, street, postal_code)
			SELECT gen_random_uuid(), u.id, 1, false, now(), 'Work', '+12175550123', 'US', 'IL', 'Capital City', '1 Factory Road', '62706'
			FROM users u WHERE u.account = ANY ($1)`, pq.Array(accountsOf(all, twoPlaces)))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO users (id, account, display_name, password_hash, created_at, verified_at)
			SELECT gen_random_uuid(), replace(account, '@', '+second@'), display_name, password_hash, created_at, verified_at
			FROM users WHERE account = ANY ($1)`, pq.Array(accountsOf(all, twoIDs)))
		return err
	})
}

func accountsOf(all []*simulated, g group) (accounts []string) {
	for _, a := range all {
		if a.group == g {
			accounts = append(accounts, a.account)
		}
	}
	return accounts
}

// makeUpFlats gives each account of the farmer a flat of its own.
func (s *target) makeUpFlats(farmer []simulated) error {
	accounts := make([]string, len(farmer))
	for i, a := range farmer {
		accounts[i] = a.account
	}
	return s.write(func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `
			UPDATE addresses SET street = '100 Main Street, Apt ' || n.n
			FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM users WHERE account = ANY ($1)) n WHERE n.id = addresses.user_id`, pq.Array(accounts))
		return err
	})
}

// write runs a transaction on the server's database.
func (s *target) write(do func(ctx context.Context, tx *ent.Tx) error) error {
	db, err := postgres.Open(context.Background(), postgres.Options{URL: s.cfg.DatabaseURL.Reveal()})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.WithTx(context.Background(), do)
}
