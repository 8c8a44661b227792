package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// Provisioned is what Provision has created.
type Provisioned struct {
	URL            string // with the new role's password, if one was drawn
	Role, Database string // "" = it was there
}

// CannotProvisionError reports that a role or a database is missing and cannot be created.
type CannotProvisionError struct {
	Role, Database string
	Missing        bool // the role or the database is missing; otherwise Cause is another problem
	Cause          error
}

func (e *CannotProvisionError) Error() string { return e.Cause.Error() }

func (e *CannotProvisionError) Unwrap() error { return e.Cause }

// drawnPassword is the length of the password of a new role, in bytes.
const drawnPassword = 24

// dialTime bounds one attempt to connect.
const dialTime = 5 * time.Second

// Provision makes sure that the role and the database of an address are there. What is missing is
// created by an administrator: at the address admin, if it is given, else by the role itself, else by
// the user of this process on the local socket. A new role without a password in the address gets
// one. Existing roles and databases are not changed.
func Provision(ctx context.Context, address, admin string) (Provisioned, error) {
	out := Provisioned{URL: address}
	direct := ping(ctx, address)
	if direct == nil || !missing(direct) {
		return out, direct
	}
	u, err := url.Parse(address)
	if err != nil {
		return out, errors.New("malformed")
	}
	role, name := u.User.Username(), strings.Trim(u.Path, "/")
	db, err := administrator(ctx, u, admin)
	if err != nil {
		return out, &CannotProvisionError{Role: role, Database: name, Missing: true, Cause: direct}
	}
	defer db.Close()
	if err := out.create(ctx, db, u); err != nil {
		return out, &CannotProvisionError{Role: role, Database: name, Missing: true, Cause: err}
	}
	if err := ping(ctx, out.URL); err != nil { // the role was there with another password, or pg_hba.conf refuses it
		return out, &CannotProvisionError{Role: role, Database: name, Cause: err}
	}
	return out, nil
}

// missing reports whether an error may mean that the role or the database does not exist.
func missing(err error) bool {
	e := pq.As(err)
	return e != nil && (e.Code == "3D000" || e.Code.Class() == "28")
}

func ping(ctx context.Context, address string) error {
	db, err := openPlain(address)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return db.PingContext(ctx)
}

func openPlain(address string) (*sql.DB, error) {
	cfg, err := configOf(address)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	c, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
	return db, nil
}

// administrator returns a connection that may create roles or databases.
func administrator(ctx context.Context, u *url.URL, admin string) (*sql.DB, error) {
	own := *u
	own.Path = "/postgres"
	candidates := []string{admin}
	if admin == "" {
		candidates = []string{own.String(), "postgres:///postgres?host=/var/run/postgresql&sslmode=disable&port=" + portOf(u)}
		if host := u.Hostname(); host != "localhost" && host != "127.0.0.1" && host != "::1" {
			candidates = candidates[:1] // the local socket is another server
		}
	}
	var last error
	for _, address := range candidates {
		if last = ping(ctx, address); last == nil {
			return openPlain(address)
		}
	}
	return nil, last
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return defaultPort
}

func (p *Provisioned) create(ctx context.Context, db *sql.DB, u *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	role, name := u.User.Username(), strings.Trim(u.Path, "/")
	var hasRole, hasDatabase bool
	if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1),
		EXISTS (SELECT FROM pg_database WHERE datname = $2)`, role, name).Scan(&hasRole, &hasDatabase); err != nil {
		return fmt.Errorf("look for role and database: %w", err)
	}
	if !hasRole {
		password, given := u.User.Password()
		if !given {
			password = rand.Text()[:drawnPassword]
			with := *u
			with.User = url.UserPassword(role, password)
			p.URL = with.String()
		}
		verifier, err := scramVerifier(password)
		if err != nil {
			return err
		}
		create := fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD %s", pq.QuoteIdentifier(role), pq.QuoteLiteral(verifier))
		if _, err := db.ExecContext(ctx, create); err != nil { //nolint:gosec // the names are quoted, and DDL takes no parameters
			return fmt.Errorf("create the role %s: %w", role, err)
		}
		p.Role = role
	}
	if hasDatabase {
		return nil
	}
	create := fmt.Sprintf("CREATE DATABASE %s OWNER %s ENCODING 'UTF8' TEMPLATE template0", pq.QuoteIdentifier(name),
		pq.QuoteIdentifier(role))
	_, err := db.ExecContext(ctx, create) //nolint:gosec // the names are quoted, and DDL takes no parameters
	if pq.As(err, pqerror.InsufficientPrivilege) != nil {
		// who is no superuser, as the administrators of managed services, has to be a member of the owner
		grant := fmt.Sprintf("GRANT %s TO CURRENT_USER", pq.QuoteIdentifier(role))
		if _, granted := db.ExecContext(ctx, grant); granted == nil { //nolint:gosec // the names are quoted, and DDL takes no parameters
			_, err = db.ExecContext(ctx, create) //nolint:gosec // the names are quoted, and DDL takes no parameters
		}
	}
	if err != nil {
		return fmt.Errorf("create the database %s: %w", name, err)
	}
	p.Database = name
	return nil
}

// scramIterations is the default of Postgres's scram_iterations.
const scramIterations = 4096

// scramVerifier returns what Postgres keeps of a password (RFC 5803), so that the password
// itself is in no log of the server.
func scramVerifier(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive the verifier of a password: %w", err)
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, encode(salt), encode(stored[:]), encode(sign("Server Key"))), nil
}
