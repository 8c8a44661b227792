// Package acceptance signs that the shop accepted an order: a buyer can prove it to others
// later, whatever the shop's records say then. A receipt is a JWT (RFC 7519) signed with
// Ed25519 (RFC 8037); the public keys are a JSON Web Key Set (RFC 7517). It is not stored:
// the signature of a task is the same each time. The same key signs the roots of draws, and
// the log of all acceptances of a sale (Logger, Logs), which outsiders check (VerifyLog). It
// does not own the task (package order), nor the secrets.
package acceptance

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
)

// receiptType is the typ in the header of a receipt.
const receiptType = "receipt+jwt"

// Claims are what a receipt says. Subject is the user, ID the order task and IssuedAt the time
// of acceptance; ids are the global ones of the API.
type Claims struct {
	jwt.RegisteredClaims

	Sale     string `json:"sale"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
}

// Signer signs receipts. It is safe for concurrent use.
type Signer struct {
	issuer  string
	private ed25519.PrivateKey
	kid     string
	set     []byte
}

// NewSigner returns a signer with the first of the secrets, each of ed25519.SeedSize bytes. The
// others belong to earlier signing keys, whose receipts remain valid. The issuer is the
// address of the shop; "" = not named.
func NewSigner(issuer string, secrets [][]byte) (*Signer, error) {
	if len(secrets) == 0 {
		return nil, errors.New("no key to sign receipts")
	}
	s := Signer{issuer: issuer}
	var set jwkset.JWKSMarshal
	for i, secret := range secrets {
		if len(secret) != ed25519.SeedSize {
			return nil, fmt.Errorf("secret %d has %d bytes, want %d", i, len(secret), ed25519.SeedSize)
		}
		private := ed25519.NewKeyFromSeed(secret)
		public, _ := private.Public().(ed25519.PublicKey)
		kid := thumbprint(public)
		key, err := jwkset.NewJWKFromKey(public,
			jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid, ALG: jwkset.AlgEdDSA, USE: jwkset.UseSig}})
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		set.Keys = append(set.Keys, key.Marshal())
		if i == 0 {
			s.private, s.kid = private, kid
		}
	}
	var err error
	if s.set, err = json.Marshal(set); err != nil {
		return nil, fmt.Errorf("encode key set: %w", err)
	}
	return &s, nil
}

// Sign returns the receipt of an accepted task, in the compact form of JWS. It returns
// NotFound for a task that no store has.
func (s *Signer) Sign(t *order.Task) (string, error) {
	if t.Vanished {
		return "", fault.New(fault.NotFound, "Nothing proves that this order was accepted.")
	}
	return s.SignAs(receiptType, Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: s.issuer, Subject: t.User.Public(), ID: t.ID.Public(), IssuedAt: jwt.NewNumericDate(t.CreatedAt),
		},
		Sale: t.Sale.Public(), Item: t.Item.Public(), Quantity: t.Quantity,
	})
}

// SignAs returns a statement of the shop as a JWT of a type. The types keep statements of
// one kind from being read as another.
func (s *Signer) SignAs(typ string, claims jwt.Claims) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["kid"], token.Header["typ"] = s.kid, typ
	text, err := token.SignedString(s.private)
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	return text, nil
}

// KeySet returns the public keys as a JSON Web Key Set.
func (s *Signer) KeySet() []byte { return s.set }

// Verify returns what a receipt says if a key of the set signed it.
func Verify(receipt string, keySet []byte) (c Claims, err error) {
	if err := VerifyAs(receiptType, receipt, keySet, &c); err != nil {
		return Claims{}, fmt.Errorf("receipt: %w", err)
	}
	return c, nil
}

// VerifyAs reads a statement of a type into claims if a key of the set signed it.
func VerifyAs(typ, statement string, keySet []byte, claims jwt.Claims) error {
	keys, err := keyfunc.NewJWKSetJSON(keySet)
	if err != nil {
		return fmt.Errorf("key set: %w", err)
	}
	token, err := jwt.ParseWithClaims(statement, claims, keys.Keyfunc,
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuedAt())
	if err != nil {
		return err
	}
	if token.Header["typ"] != typ {
		return fmt.Errorf("it is a %v, want %s", token.Header["typ"], typ)
	}
	return nil
}

// thumbprint returns the key id of RFC 7638.
func thumbprint(public ed25519.PublicKey) string {
	hash := crypto.SHA256.New()
	fmt.Fprintf(hash, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, base64.RawURLEncoding.EncodeToString(public))
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}
